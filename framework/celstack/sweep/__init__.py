"""Many runs of one recipe: a grid of options, run side by side and set beside one another."""

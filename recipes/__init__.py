"""The recipes, as a package so that the wheel carries them."""

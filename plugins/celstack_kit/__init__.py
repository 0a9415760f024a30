"""First-party plugins of Celstack, found through the entry points that any package may use."""

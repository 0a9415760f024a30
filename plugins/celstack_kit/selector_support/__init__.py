"""What several selectors share; uses the core alone, and no plugin."""

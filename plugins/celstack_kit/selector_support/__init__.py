"""What several selectors share; uses the core alone, and contains no plugin."""

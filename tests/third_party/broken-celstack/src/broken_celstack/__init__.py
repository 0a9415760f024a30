"""Everything a plugin package can do wrong."""

"""What Acme's parts share: a plugin package may have modules that are no plugins."""

MIDDLE = 0.5
"""The grey that contrast turns around, and that stripes are painted on."""

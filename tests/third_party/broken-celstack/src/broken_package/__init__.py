"""A package that fails before its plugin is reached."""

raise RuntimeError("broken_package is not configured")

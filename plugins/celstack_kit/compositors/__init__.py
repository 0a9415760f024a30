"""Compositors: plugins that decide which layer occludes which."""

"""What several datasets share: base classes, the image cache, collages, readers of masks.

Uses the core and ``formats``; contains no plugin.
"""

"""The registry: from entry points to classes, and from their constructors to checked options.

Uses errors and text. Listing and checking import neither torch nor any plugin.
"""

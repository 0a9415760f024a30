"""Selectors: plugins that choose the sprite of each layer.

What several of them share is in ``selector_support``.
"""

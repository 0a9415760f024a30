"""Interfaces: the base class of each kind of plugin, with its laws in the docstring.

Uses geometry, registry and scenes. ``celstack.testing`` checks the laws. Everything here is
exported by ``celstack``.
"""

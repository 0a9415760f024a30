"""Interfaces: the base class of each kind of plugin, with its laws in the docstring.

Uses geometry, registry and scenes. Plugins import these classes from ``celstack``;
``celstack.testing`` checks the laws.
"""

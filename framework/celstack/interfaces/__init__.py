"""The interfaces: what each kind of part promises, with its laws.

Uses geometry and scenes. Plugins implement these; ``celstack.testing`` checks the laws.
"""

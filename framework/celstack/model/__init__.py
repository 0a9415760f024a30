"""The model: from images to scenes and back.

Uses geometry and the interfaces. ``Decomposer`` puts parts together; everything else here
makes its two verbs, explain and render, fast.
"""

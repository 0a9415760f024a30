"""Transforms: what may happen to a sprite on its way to the canvas."""

"""Prototypes: plugins that hold the learnable sprites and backgrounds."""

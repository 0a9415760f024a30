"""Transforms: plugins that warp sprites or change their colors."""

"""Predictors: plugins that map images to transform parameters."""

"""Predictors: from an image to transform parameters."""

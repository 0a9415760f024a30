"""Metrics: scores of decompositions against the images and the ground truth."""

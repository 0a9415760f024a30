"""Encoders: from an image to features."""

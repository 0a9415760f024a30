"""Encoders: plugins that map images to feature vectors."""

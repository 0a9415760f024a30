"""Selectors: which sprite fills which layer."""

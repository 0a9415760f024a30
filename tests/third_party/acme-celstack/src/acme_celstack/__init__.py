"""Acme's parts for Celstack."""

"""Recipes: from TOML to an assembly, with all mistakes reported at once.

Uses the registry, the interfaces, the model and data. Nothing here trains or writes files.
"""

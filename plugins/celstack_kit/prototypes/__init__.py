"""Prototypes: where sprites and backgrounds come from."""

"""Compositors: how layers are stacked."""

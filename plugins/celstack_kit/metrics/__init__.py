"""Metrics: how well images were explained."""

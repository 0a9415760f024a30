"""Datasets: images, and what is known about them."""

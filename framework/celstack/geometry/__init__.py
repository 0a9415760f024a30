"""Geometry: points, maps between them, windows on a canvas, and values kept in range.

Public. Uses nothing of Celstack; every convention of coordinates is stated here.
"""

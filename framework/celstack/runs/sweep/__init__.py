"""Sweeps: runs of one recipe over a grid of options, executed side by side and summarized.

Uses recipes and run folders. Runs are started as processes of their own, or as cluster jobs.
"""

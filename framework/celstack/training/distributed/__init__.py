"""Distributed training: launching, process groups, engine, batch normalization, stopping.

Uses the model. With a single process every collective operation here is a no-op.
"""

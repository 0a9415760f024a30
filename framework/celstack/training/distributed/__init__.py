"""Distributed training: processes, collectives, shared batch statistics, launching, stopping.

Uses the model. With one process, everything here does nothing.
"""

"""Observers: parts that are called during a run, to show or write its progress."""

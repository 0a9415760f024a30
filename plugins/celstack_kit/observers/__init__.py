"""Observers: those who are told what happens in a run."""

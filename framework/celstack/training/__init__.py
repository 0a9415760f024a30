"""Training: the loop, one step, the optimizer, reassignment, callbacks and the health check.

Uses the model, data, recipes, evaluation and run folders.
"""

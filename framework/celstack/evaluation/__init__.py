"""Evaluation: how well images were explained.

Public. Confusion matrices, statistics of sprites, usage, and pictures of decompositions. Uses
the model; knows nothing of run folders or training.
"""

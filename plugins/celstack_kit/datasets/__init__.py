"""Datasets: plugins that provide images, with or without ground truth.

What several of them share is in ``dataset_support``, ``formats`` and ``clevr``.
"""

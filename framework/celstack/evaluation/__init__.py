"""Evaluation: how well images were explained.

Public. Confusion matrices, statistics of sprites, usage, and pictures of decompositions. Uses
the model; knows nothing of run folders or training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.evaluation.confusion import Confusion, clusters, contingency
    from celstack.evaluation.usage import Usage
    from celstack.evaluation.visualize import draw_examples, on_checkerboard

# Imported when first used, to keep imports of the package cheap.
_HOME = {
    "Confusion": "confusion",
    "Usage": "usage",
    "clusters": "confusion",
    "contingency": "confusion",
    "draw_examples": "visualize",
    "on_checkerboard": "visualize",
}

__all__ = [
    "Confusion",
    "Usage",
    "clusters",
    "contingency",
    "draw_examples",
    "on_checkerboard",
]

__getattr__ = lazy_getattr(__name__, _HOME)

"""Evaluation: how well images were explained.

Public. Confusion matrices, statistics of sprites, usage, and pictures of decompositions. Uses
the model; knows nothing of run folders or training.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'celstack.evaluation' has no attribute '{name}'")
    return getattr(import_module(f"celstack.evaluation.{_HOME[name]}"), name)

"""Evaluation: how well images were explained.

Public. Metric plugins import what they need from here: partial metric classes, confusion
tables, and cluster labels. Observers find sprite usage and pictures of decompositions.
Uses the model; knows nothing of run folders or training.

Example:
    >>> from celstack.evaluation import ConfusionMetric
    >>> class PixelAccuracy(ConfusionMetric):
    ...     needs = ("classes",)
    ...     def compute(self) -> float:
    ...         matched = self.confusion.match()
    ...         return (matched.hits.sum() / matched.true.sum()).item()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.evaluation.confusion import (
        Confusion,
        MatchedClasses,
        best_assignment,
        clusters,
        contingency,
    )
    from celstack.evaluation.partial_metrics import ConfusionMetric, PerImageMetric
    from celstack.evaluation.sprite_stats import SpriteStats
    from celstack.evaluation.usage import Usage
    from celstack.evaluation.visualize import (
        color_labels,
        draw_batch,
        draw_examples,
        draw_sprites,
        on_checkerboard,
        tile,
        to_pil_image,
    )

# Imported when first used, because all of them import torch.
_HOME = {
    "Confusion": "confusion",
    "ConfusionMetric": "partial_metrics",
    "MatchedClasses": "confusion",
    "PerImageMetric": "partial_metrics",
    "SpriteStats": "sprite_stats",
    "Usage": "usage",
    "best_assignment": "confusion",
    "clusters": "confusion",
    "color_labels": "visualize",
    "contingency": "confusion",
    "draw_batch": "visualize",
    "draw_examples": "visualize",
    "draw_sprites": "visualize",
    "on_checkerboard": "visualize",
    "tile": "visualize",
    "to_pil_image": "visualize",
}

__all__ = [
    "Confusion",
    "ConfusionMetric",
    "MatchedClasses",
    "PerImageMetric",
    "SpriteStats",
    "Usage",
    "best_assignment",
    "clusters",
    "color_labels",
    "contingency",
    "draw_batch",
    "draw_examples",
    "draw_sprites",
    "on_checkerboard",
    "tile",
    "to_pil_image",
]

__getattr__ = lazy_getattr(__name__, _HOME)

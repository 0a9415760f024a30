"""Metadata of scores: the images they were measured on, units, and scores per image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celstack.interfaces.metric import Metric
    from celstack.recipe.assembly import Assembly


def score_metadata(
    assembly: Assembly, scores: Mapping[str, float], failures: Mapping[str, str]
) -> dict[str, Any]:
    """Return what scores were measured on, and which of them tables show in percent.

    ``files`` are the published files of the dataset, empty if its data is whatever lies in
    its ``root``. ``failed`` says why metrics have no score.
    """
    split, images = assembly.evaluation.split, assembly.evaluation.images
    return {
        "split": split,
        "images": min(images, assembly.dataset.count(split)),
        "files": list(assembly.dataset.files),
        "percent": percentages(assembly.metrics, scores),
        "failed": dict(failures),
    }


def percentages(metrics: Iterable[Metric], scores: Mapping[str, float]) -> list[str]:
    """Return the names of the scores that tables show in percent."""
    return [metric.name for metric in metrics if metric.percent and metric.name in scores]


def image_scores(
    metrics: Iterable[Metric], scores: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return the scores of each image, for the metrics in ``scores`` that keep them."""
    kept = [metric for metric in metrics if metric.name in scores]
    return {
        metric.name: list(map(float, metric.scores))
        for metric in kept
        if metric.scores is not None
    }

"""ARI: adjusted Rand index of instances, over all pixels."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import Batch, Rendering, Scene, hookimpl
from celstack.evaluation import PerImageMetric, contingency


class Ari(PerImageMetric):
    """Adjusted Rand index of instances, background included, averaged over images."""

    needs = ("instances",)
    percent = True

    def score_images(
        self,
        scene: Scene,  # noqa: ARG002
        rendering: Rendering,
        batch: Batch,
    ) -> Float[Tensor, " B"]:
        """Return the index of each image."""
        assert batch.instances is not None
        return adjusted_rand(batch.instances, rendering.instances())


def adjusted_rand(
    truth: Int[Tensor, "B H W"], labels: Int[Tensor, "B H W"]
) -> Float[Tensor, " B"]:
    """Return the index of each image; 1 if truth and labels both have a single label."""
    return index_of_tables(contingency(truth, labels))


def index_of_tables(table: Float[Tensor, "B R S"]) -> Float[Tensor, " B"]:
    """Return the index of each image, from its contingency table."""
    pixels = table.sum((1, 2))
    together = _pairs(table).sum((1, 2))
    rows, columns = _pairs(table.sum(2)).sum(1), _pairs(table.sum(1)).sum(1)
    expected = rows * columns / _pairs(pixels)
    best = (rows + columns) / 2
    score = (together - expected) / (best - expected)
    # Perfect agreement is detected in whole numbers: with one label, the score is 0 / 0.
    return torch.where(together == best, torch.ones_like(score), score)


def _pairs(counts: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    return counts * (counts - 1) / 2


@hookimpl
def celstack_metrics() -> dict[str, type[Ari]]:
    """Provide ``metrics = ["ari"]`` for recipes."""
    return {"ari": Ari}

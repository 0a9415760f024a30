"""ARI: how well instances were told apart, over all pixels."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import Batch, Metric, Rendering, Scene, hookimpl
from celstack.evaluation import contingency


class Ari(Metric):
    """Adjusted Rand index of instances, background included, averaged over images."""

    needs = ("instances",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.scores: list[float] = []

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:  # noqa: ARG002
        """Score each image of a batch."""
        assert batch.instances is not None
        self.scores += adjusted_rand(batch.instances, rendering.instances()).tolist()

    def compute(self) -> float:
        """Return the mean over images."""
        return sum(self.scores) / len(self.scores)


def adjusted_rand(
    truth: Int[Tensor, "B H W"], labels: Int[Tensor, "B H W"]
) -> Float[Tensor, " B"]:
    """Return the index of each image; 1 where both have a single label."""
    return index_of_tables(contingency(truth, labels))


def index_of_tables(table: Float[Tensor, "B R S"]) -> Float[Tensor, " B"]:
    """Return the index of each image, from how many pixels have which pair of labels."""
    pixels = table.sum((1, 2))
    together = _pairs(table).sum((1, 2))
    rows, columns = _pairs(table.sum(2)).sum(1), _pairs(table.sum(1)).sum(1)
    expected = rows * columns / _pairs(pixels)
    best = (rows + columns) / 2
    score = (together - expected) / (best - expected)
    # Perfect agreement is told from whole numbers: with one label, the score is 0 / 0.
    return torch.where(together == best, torch.ones_like(score), score)


def _pairs(counts: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    return counts * (counts - 1) / 2


@hookimpl
def celstack_metrics() -> dict[str, type[Ari]]:
    """Let recipes say ``metrics = ["ari"]``."""
    return {"ari": Ari}

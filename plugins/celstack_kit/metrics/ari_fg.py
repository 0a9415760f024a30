"""ARI-FG: how well instances were told apart, over the pixels of objects."""

import torch
from jaxtyping import Int
from torch import Tensor

from celstack import Batch, Metric, Rendering, Scene, hookimpl
from celstack.evaluation import contingency
from celstack_kit.metrics.ari import index_of_tables


class AriFg(Metric):
    """Adjusted Rand index of instances over true foreground, averaged over images.

    Where a background is predicted, the nearest layer counts instead (paper, Sec. 4.1).
    The score of an image without foreground is NaN, and left out of the mean.
    """

    needs = ("instances",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.scores: list[float] = []

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Score each image of a batch."""
        assert batch.instances is not None
        labels = without_background(scene, rendering, batch)
        # The first row counts the pixels of the true background.
        table = contingency(batch.instances, labels)[:, 1:]
        scores = index_of_tables(table)
        self.scores += scores.masked_fill(table.sum((1, 2)) == 0, torch.nan).tolist()

    def compute(self) -> float:
        """Return the mean over images with foreground; NaN if there are none."""
        return torch.tensor(self.scores, dtype=torch.float64).nanmean().item()


def without_background(
    scene: Scene, rendering: Rendering, batch: Batch
) -> Int[Tensor, "B H W"]:
    """Label each pixel with a layer, counted from 1, also where background is seen.

    There it is the layer whose colour, whatever its alpha, is nearest to the image. Empty
    layers have no colour; where all are empty, all pixels get the same label.
    """
    distance = (rendering.layers[:, :, :-1] - batch.images[:, None]).square_().sum(2)
    empty = (~scene.filled)[:, :, None, None]
    # Not argmin, which takes several times as long.
    nearest = distance.masked_fill(empty, torch.inf).min(1).indices + 1
    labels = rendering.instances()
    return torch.where(labels == 0, nearest, labels)


@hookimpl
def celstack_metrics() -> dict[str, type[AriFg]]:
    """Let recipes say ``metrics = ["ari_fg"]``."""
    return {"ari_fg": AriFg}

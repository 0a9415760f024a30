"""ARI-FG: adjusted Rand index of instances, over the pixels of objects."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import Batch, Rendering, Scene, hookimpl
from celstack.evaluation import PerImageMetric, contingency
from celstack_kit.metrics.ari import index_of_tables


class AriFg(PerImageMetric):
    """Adjusted Rand index of instances over true foreground, averaged over images.

    Where a background is predicted, the nearest layer counts instead (paper, Sec. 4.1).
    The score of an image without foreground is NaN, and left out of the mean.
    """

    needs = ("instances",)
    percent = True

    def score_images(
        self, scene: Scene, rendering: Rendering, batch: Batch
    ) -> Float[Tensor, " B"]:
        """Return the index of each image; NaN without foreground."""
        assert batch.instances is not None
        labels = without_background(scene, rendering, batch)
        # The first row counts the pixels of the true background.
        table = contingency(batch.instances, labels)[:, 1:]
        return index_of_tables(table).masked_fill(table.sum((1, 2)) == 0, torch.nan)

    def compute(self) -> float:
        """Return the mean over images with foreground; NaN if there are none."""
        return torch.tensor(self.scores, dtype=torch.float64).nanmean().item()


def without_background(
    scene: Scene, rendering: Rendering, batch: Batch
) -> Int[Tensor, "B H W"]:
    """Label each pixel with a layer, counted from 1, even where the background is visible.

    There it is the layer whose color, regardless of its alpha, is nearest to the image. Empty
    layers have no color; if all layers are empty, all pixels get the same label.
    """
    distance = (rendering.layers[:, :, :-1] - batch.images[:, None]).square_().sum(2)
    empty = (~scene.filled)[:, :, None, None]
    # argmin would take several times as long.
    nearest = distance.masked_fill(empty, torch.inf).min(1).indices + 1
    labels = rendering.instances()
    return torch.where(labels == 0, nearest, labels)


@hookimpl
def celstack_metrics() -> dict[str, type[AriFg]]:
    """Provide ``metrics = ["ari_fg"]`` for recipes."""
    return {"ari_fg": AriFg}

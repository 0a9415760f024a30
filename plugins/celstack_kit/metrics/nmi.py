"""NMI: how much clusters tell about classes."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import Batch, Metric, Rendering, Scene, hookimpl
from celstack.evaluation import Confusion, clusters


class Nmi(Metric):
    """Normalised mutual information of clusters and classes of whole images.

    The sprite that shows most is the image's cluster, and images without any are a cluster
    too. The mutual information is divided by the arithmetic mean of both entropies.
    """

    needs = ("label",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.confusion = Confusion()

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count the images of a batch."""
        assert batch.label is not None
        self.confusion.add(batch.label, clusters(scene, rendering))

    def compute(self) -> float:
        """Return the number for all images so far."""
        return normalized_mutual_information(self.confusion.table)


def normalized_mutual_information(table: Float[Tensor, "R S"]) -> float:
    """Return it for a table of counts; 1 where there is one class and one cluster."""
    both = _entropy(table.sum(1)) + _entropy(table.sum(0))
    if both == 0.0:
        return 1.0
    shared = both - _entropy(table)
    # Rounding could make it a little less than nothing.
    return max(shared / (both / 2), 0.0)


def _entropy(counts: Float[Tensor, "*any"]) -> float:
    share = counts / counts.sum()
    return -torch.xlogy(share, share).sum().item()


@hookimpl
def celstack_metrics() -> dict[str, type[Nmi]]:
    """Let recipes say ``metrics = ["nmi"]``."""
    return {"nmi": Nmi}

"""NMI: normalized mutual information of clusters and classes."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import hookimpl
from celstack.evaluation import ConfusionMetric


class Nmi(ConfusionMetric):
    """Normalized mutual information of clusters and classes of whole images.

    Clusters are those of ``accuracy``. The mutual information is divided by the arithmetic
    mean of both entropies.
    """

    needs = ("label",)

    def compute(self) -> float:
        """Return the normalized mutual information over all images."""
        return normalized_mutual_information(self.confusion.table)


def normalized_mutual_information(table: Float[Tensor, "R S"]) -> float:
    """Compute it from a table of counts; 1 if there is one class and one cluster."""
    both = _entropy(table.sum(1)) + _entropy(table.sum(0))
    if both == 0.0:
        return 1.0
    shared = both - _entropy(table)
    # Rounding could make it slightly negative.
    return max(shared / (both / 2), 0.0)


def _entropy(counts: Float[Tensor, "*any"]) -> float:
    share = counts / counts.sum()
    return -torch.xlogy(share, share).sum().item()


@hookimpl
def celstack_metrics() -> dict[str, type[Nmi]]:
    """Provide ``metrics = ["nmi"]`` for recipes."""
    return {"nmi": Nmi}

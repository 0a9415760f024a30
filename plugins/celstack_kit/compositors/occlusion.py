"""Occlusion: which layer hides which is predicted for every image."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from celstack import CelstackError, Compositor, hookimpl

MOST_ORDERED = 12


class Occlusion(Compositor):
    """A predicted occlusion matrix (paper, Eq. 2 and Sec. 3.2, "Occlusion modeling").

    A logit for every pair of layers says how surely the later one hides the earlier. While
    training the matrix is soft; afterwards it is binary, and a tie goes to the later layer.
    With ``ordering`` it is then replaced by the nearest one that is a true order of layers.
    """

    def __init__(self, layers: Annotated[int, Ge(1)], ordering: bool = False) -> None:
        if ordering and layers > MOST_ORDERED:
            raise CelstackError(f"ordering: is for at most {MOST_ORDERED} layers, not {layers}")
        self.layers = layers
        self.ordering = ordering

    @property
    def num_logits(self) -> int:
        """One for each pair of layers."""
        return self.layers * (self.layers - 1) // 2

    def occlusion(self, logits: Float[Tensor, "B N"], training: bool) -> Float[Tensor, "B L L"]:
        """Fill the lower triangle row by row; the upper is its complement."""
        chance = logits.sigmoid()
        rows, columns = torch.tril_indices(self.layers, self.layers, -1, device=logits.device)
        if not training and not self.ordering:
            chance = (chance >= 0.5).to(logits)
        matrix = logits.new_zeros(len(logits), self.layers, self.layers)
        matrix[:, rows, columns] = chance
        matrix[:, columns, rows] = 1 - chance
        return nearest_order(matrix) if self.ordering and not training else matrix


def nearest_order(matrix: Float[Tensor, "B L L"]) -> Float[Tensor, "B L L"]:
    """Return the order of layers whose matrix is nearest, in squared difference.

    Nearest means that the entries where a layer hides another add up to most. The best sum
    for a set of rearmost layers follows from the best for all sets with one layer less.
    """
    batch, layers, _ = matrix.shape
    best = {0: (matrix.new_zeros(batch), matrix.new_zeros(batch, layers, layers))}
    for members in range(1, 2**layers):
        inside = [layer for layer in range(layers) if members >> layer & 1]
        for nearest in inside:
            rest = [layer for layer in inside if layer != nearest]
            total, order = best[members ^ (1 << nearest)]
            total = total + matrix[:, nearest, rest].sum(1)
            order = order.clone()
            order[:, nearest, rest] = 1.0
            if members in best:
                better = total >= best[members][0]  # later layers are nearer where it is a tie
                total = torch.where(better, total, best[members][0])
                order = torch.where(better[:, None, None], order, best[members][1])
            best[members] = (total, order)
    return best[2**layers - 1][1]


@hookimpl
def celstack_compositors() -> dict[str, type[Occlusion]]:
    """Let recipes say ``use = "occlusion"``."""
    return {"occlusion": Occlusion}

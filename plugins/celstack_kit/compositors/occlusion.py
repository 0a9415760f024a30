"""Occlusion: a predicted occlusion matrix for every image."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from celstack import CelstackError, Compositor, hookimpl

MAX_ORDERED_LAYERS = 12


class Occlusion(Compositor):
    """The predicted occlusion matrix (paper, Eq. 2 and Sec. 3.2, "Occlusion modeling").

    There is a logit for every pair of layers, that the later one occludes the earlier. The
    matrix is soft in training and binary in evaluation, where a tie goes to the later layer.
    With ``ordering``, it is then replaced by the nearest total order of layers.
    """

    def __init__(self, layers: Annotated[int, Ge(1)], ordering: bool = False) -> None:
        if ordering and layers > MAX_ORDERED_LAYERS:
            raise CelstackError(
                f"ordering: is for at most {MAX_ORDERED_LAYERS} layers, not {layers}"
            )
        self.layers = layers
        self.ordering = ordering

    @property
    def num_logits(self) -> int:
        """Number of pairs of layers."""
        return self.layers * (self.layers - 1) // 2

    def occlusion(self, logits: Float[Tensor, "B N"], training: bool) -> Float[Tensor, "B L L"]:
        """Fill the lower triangle with probabilities row by row, the upper with complements."""
        probability = logits.sigmoid()
        rows, columns = torch.tril_indices(self.layers, self.layers, -1, device=logits.device)
        if not training and not self.ordering:
            probability = (probability >= 0.5).to(logits)
        matrix = logits.new_zeros(len(logits), self.layers, self.layers)
        matrix[:, rows, columns] = probability
        matrix[:, columns, rows] = 1 - probability
        return nearest_order(matrix) if self.ordering and not training else matrix


def nearest_order(matrix: Float[Tensor, "B L L"]) -> Float[Tensor, "B L L"]:
    """Return the total order of layers whose matrix is nearest in squared difference.

    That order maximizes the sum of the entries where a layer occludes another. Dynamic
    programming: the best sum for a set of rearmost layers follows from those of its subsets
    with one layer less.
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
                better = total >= best[members][0]  # in a tie, the later layer is in front
                total = torch.where(better, total, best[members][0])
                order = torch.where(better[:, None, None], order, best[members][1])
            best[members] = (total, order)
    return best[2**layers - 1][1]


@hookimpl
def celstack_compositors() -> dict[str, type[Occlusion]]:
    """Let recipes say ``use = "occlusion"``."""
    return {"occlusion": Occlusion}

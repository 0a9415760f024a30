"""Confusion: how often each true label meets each predicted one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack.scene import Rendering, Scene


class Matched(NamedTuple):
    """What became of the R classes that occur in the truth."""

    hits: Float[Tensor, " R"]
    """How often a class was found."""
    true: Float[Tensor, " R"]
    """How often it was there."""
    predicted: Float[Tensor, " R"]
    """How often its label was given, right or wrong."""


class Confusion:
    """Counts over all batches; true labels are rows, predicted ones columns, both from 0."""

    table: Float[Tensor, "R S"]

    def __init__(self) -> None:
        self.table = torch.zeros(0, 0, dtype=torch.float64)

    def add(self, truth: Int[Tensor, "*any"], labels: Int[Tensor, "*any"]) -> None:
        """Count every pair of labels; the table grows to hold the highest."""
        counts = contingency(truth.reshape(1, 1, -1), labels.reshape(1, 1, -1))[0]
        rows = max(len(self.table), len(counts))
        columns = max(self.table.shape[1], counts.shape[1])
        self.table = _grown(self.table, rows, columns) + _grown(counts, rows, columns)

    def match(self) -> Matched:
        """Give every class a label of its own, so that most is right (Hungarian matching).

        Background is a class and a label like any other. Classes that never occur in the
        truth are left out. Where labels are fewer than classes, a class without one was
        never found; where they are more, those left over are wrong wherever they are.
        """
        table = self.table[self.table.sum(1) > 0]
        rows, columns = assign(table)
        hits, predicted = table.new_zeros(2, len(table))
        hits[rows] = table[rows, columns]
        predicted[rows] = table.sum(0)[columns]
        return Matched(hits, table.sum(1), predicted)


def assign(table: Float[Tensor, "R S"]) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
    """Pair rows with columns, each at most once, so that the pairs count most together."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = map(torch.from_numpy, linear_sum_assignment(table.numpy(), maximize=True))
    return rows, columns


def contingency(
    truth: Int[Tensor, "B H W"], labels: Int[Tensor, "B H W"]
) -> Float[Tensor, "B R S"]:
    """Count, for each image, the pixels of every pair of labels."""
    truth, labels = truth.flatten(1), labels.flatten(1)
    rows, columns = int(truth.max()) + 1, int(labels.max()) + 1
    image = torch.arange(len(truth), device=truth.device)[:, None]
    cell = (image * rows + truth) * columns + labels
    counts = torch.bincount(cell.flatten(), minlength=len(truth) * rows * columns)
    # Not every device has doubles.
    return counts.view(len(truth), rows, columns).cpu().double()


def _grown(table: Float[Tensor, "r s"], rows: int, columns: int) -> Float[Tensor, "R S"]:
    return pad(table, (0, columns - table.shape[1], 0, rows - len(table)))


def clusters(scene: Scene, rendering: Rendering) -> Int[Tensor, " B"]:
    """Label each image with its sprite, counted from 1; 0 where all layers are empty.

    Of several layers that are not empty, the one that shows most gives the label.
    """
    area = rendering.visible.sum((2, 3)).masked_fill(~scene.filled, -torch.inf)
    layer = area.argmax(1, keepdim=True)
    return scene.sprite.gather(1, layer).squeeze(1) + 1

"""Confusion tables: how often each true label coincides with each predicted label."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene


class MatchedClasses(NamedTuple):
    """Counts of the R classes that occur in the truth, each matched with one label."""

    hits: Float[Tensor, " R"]
    """How often a class was predicted where it is true."""
    true: Float[Tensor, " R"]
    """How often the class is true."""
    predicted: Float[Tensor, " R"]
    """How often its label was predicted, right or wrong."""


class Confusion:
    """A table of counts over all batches: true labels are rows, predicted ones columns.

    Both count from 0. The table grows to hold the highest label.
    """

    table: Float[Tensor, "R S"]

    def __init__(self) -> None:
        self.table = torch.zeros(0, 0, dtype=torch.float64)

    def add(self, truth: Int[Tensor, "*any"], labels: Int[Tensor, "*any"]) -> None:
        """Count every pair of a true and a predicted label."""
        counts = contingency(truth.reshape(1, 1, -1), labels.reshape(1, 1, -1))[0]
        rows = max(len(self.table), len(counts))
        columns = max(self.table.shape[1], counts.shape[1])
        self.table = _padded(self.table, rows, columns) + _padded(counts, rows, columns)

    def add_pixels(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count pixels: their true class against the sprite that they show."""
        assert batch.classes is not None
        self.add(batch.classes, rendering.classes(scene))

    def add_images(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count images: their true label against their cluster."""
        assert batch.label is not None
        self.add(batch.label, clusters(scene, rendering))

    def match(self) -> MatchedClasses:
        """Match every class with one label, so that most counts agree (Hungarian matching).

        Background is a class and a label like any other. Classes that never occur in the
        truth are left out. If there are fewer labels than classes, a class without a label
        has no hits; if there are more, the labels left over are counted as wrong.
        """
        table = self.table[self.table.sum(1) > 0]
        rows, columns = best_assignment(table)
        hits, predicted = table.new_zeros(2, len(table))
        hits[rows] = table[rows, columns]
        predicted[rows] = table.sum(0)[columns]
        return MatchedClasses(hits, table.sum(1), predicted)


def best_assignment(
    table: Float[Tensor, "R S"],
) -> tuple[Int[Tensor, " n"], Int[Tensor, " n"]]:
    """Return the rows and columns of the one-to-one assignment with the largest sum."""
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
    # Not every device supports float64.
    return counts.view(len(truth), rows, columns).cpu().double()


def _padded(table: Float[Tensor, "r s"], rows: int, columns: int) -> Float[Tensor, "R S"]:
    return pad(table, (0, columns - table.shape[1], 0, rows - len(table)))


def clusters(scene: Scene, rendering: Rendering) -> Int[Tensor, " B"]:
    """Label each image with its sprite, counted from 1; 0 where all layers are empty.

    Of several layers that are not empty, the one with the largest visible area counts.
    """
    area = rendering.visible.sum((2, 3)).masked_fill(~scene.filled, -torch.inf)
    layer = area.argmax(1, keepdim=True)
    return scene.sprite.gather(1, layer).squeeze(1) + 1

"""Sprite statistics: how often each sprite is used, and for what, over an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from celstack.evaluation.confusion import Confusion, best_assignment
from celstack.evaluation.usage import Usage
from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene

BACKGROUND = "background"
MIN_BACKGROUND_ERROR = 1e-4
"""Lower bound on the background's error when a sprite's share is computed."""
MAX_EXEMPLARS = 3
"""How many images are kept for each sprite."""


class SpriteStats:
    """Statistics over all batches: usage, classes covered, and error removed by each sprite.

    Classes are counted pixel by pixel where every pixel's class is known, else image by image;
    not at all where the dataset has no ground truth.

    Attributes:
        error_reduction: By how much each sprite lowers the squared error of the backgrounds
            alone, where it is visible, summed over images.
        exemplars: For each sprite, the images whose error it reduces by the largest share,
            as pairs of share and image number, the largest share first.
    """

    def __init__(self, sprites: int) -> None:
        self.usage = Usage(sprites)
        self.error_reduction = torch.zeros(sprites, dtype=torch.float64)
        self.exemplars: list[list[tuple[float, int]]] = [[] for _ in range(sprites)]
        self.images = 0
        self.unit = ""
        self.confusion = Confusion()

    def add(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count a batch."""
        self._add_error_reduction(scene, rendering, batch)
        self.images += len(batch)
        self.usage.add(scene.sprite.cpu())
        if batch.classes is not None:
            self.unit = "pixels"
            self.confusion.add_pixels(scene, rendering, batch)
        elif batch.label is not None:
            self.unit = "images"
            self.confusion.add_images(scene, rendering, batch)

    def best(self, count: int) -> list[int]:
        """List the used sprites with the largest error reduction, the largest first."""
        order: list[int] = self.error_reduction.argsort(descending=True, stable=True).tolist()
        return [sprite for sprite in order if self.exemplars[sprite]][:count]

    def _add_error_reduction(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        without = (batch.images - rendering.backdrop).square().mean(1)
        saved = without - (batch.images - rendering.image).square().mean(1)
        per_layer = (rendering.visible * saved[:, None]).flatten(2).mean(2).cpu().double()
        total = without.flatten(1).mean(1).cpu().double().clamp_min(MIN_BACKGROUND_ERROR)
        kinds = scene.sprite.cpu()
        for sprite, exemplars in enumerate(self.exemplars):
            reduction = (per_layer * (kinds == sprite)).sum(1)
            self.error_reduction[sprite] += reduction.sum()
            found = (kinds == sprite).any(1).nonzero()[:, 0].tolist()
            share = reduction / total
            exemplars += [(float(share[image]), self.images + image) for image in found]
            exemplars.sort(key=lambda one: (-one[0], one[1]))
            del exemplars[MAX_EXEMPLARS:]

    def to_dict(self, class_names: Sequence[str]) -> dict[str, Any]:
        """Return the counts as a run folder stores them.

        Args:
            class_names: The dataset's names of its classes.

        Returns:
            ``usage`` is how many layers each sprite fills. ``counts`` has a row for each of the
            ``classes`` that occur, and a column for no sprite and for each sprite. ``names``
            are the classes matched with sprites, at most one each (Hungarian matching), None
            for a sprite without a match.
        """
        stats = {"images": self.images, "usage": self.usage.counts.tolist()}
        if not self.unit:
            return stats
        sprites = len(self.usage.counts)
        table = torch.zeros(len(self.confusion.table), sprites + 1, dtype=torch.float64)
        table[:, : self.confusion.table.shape[1]] = self.confusion.table
        known = [BACKGROUND, *class_names] if self.unit == "pixels" else list(class_names)
        known += [f"class {number}" for number in range(len(known), len(table))]
        occur = [row for row in range(len(table)) if table[row].sum() > 0]
        names: list[str | None] = [None] * sprites
        pairs = (indices.tolist() for indices in best_assignment(table[occur]))
        for row, column in zip(*pairs, strict=True):
            if column > 0 and table[occur[row], column] > 0:
                names[column - 1] = known[occur[row]]
        return {
            **stats,
            "unit": self.unit,
            "classes": [known[row] for row in occur],
            "counts": table[occur].long().tolist(),
            "names": names,
        }

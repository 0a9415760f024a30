"""Census: how often each sprite was used, and for what, over the images of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from celstack.evaluation.confusion import Confusion, assign, clusters
from celstack.evaluation.usage import Usage
from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene

BACKGROUND = "background"
LEAST = 1e-4
"""Where backgrounds alone are as good as this, nothing is owed to anybody."""
MEMBERS = 3
"""How many images are remembered of each sprite."""


class Census:
    """Counts, over all batches, which sprites fill layers and which true classes they cover.

    Classes are counted pixel by pixel where every pixel's class is known, else image by image;
    nothing is known of them where the dataset has no ground truth. What a sprite is worth is
    by how much it lowers the squared error of the backgrounds alone, where it is visible; its
    members are the images of whose error it takes away the largest share.
    """

    def __init__(self, sprites: int) -> None:
        self.usage = Usage(sprites)
        self.worth = torch.zeros(sprites, dtype=torch.float64)
        self.members: list[list[tuple[float, int]]] = [[] for _ in range(sprites)]
        self.images = 0
        self.unit = ""
        self.confusion = Confusion()

    def add(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count a batch."""
        self._appraise(scene, rendering, batch)
        self.images += len(batch)
        self.usage.add(scene.sprite.cpu())
        if batch.classes is not None:
            self.unit = "pixels"
            self.confusion.add(batch.classes, rendering.classes(scene))
        elif batch.label is not None:
            self.unit = "images"
            self.confusion.add(batch.label, clusters(scene, rendering))

    def best(self, count: int) -> list[int]:
        """List the sprites that are worth most, the best first; those never used are not."""
        order: list[int] = self.worth.argsort(descending=True, stable=True).tolist()
        return [sprite for sprite in order if self.members[sprite]][:count]

    def _appraise(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        without = (batch.images - rendering.backdrop).square().mean(1)
        saved = without - (batch.images - rendering.image).square().mean(1)
        share = (rendering.visible * saved[:, None]).flatten(2).mean(2).cpu().double()
        whole = without.flatten(1).mean(1).cpu().double().clamp_min(LEAST)
        kinds = scene.sprite.cpu()
        for sprite, members in enumerate(self.members):
            worth = (share * (kinds == sprite)).sum(1)
            self.worth[sprite] += worth.sum()
            found = (kinds == sprite).any(1).nonzero()[:, 0].tolist()
            part = worth / whole
            members += [(float(part[image]), self.images + image) for image in found]
            members.sort(key=lambda one: (-one[0], one[1]))
            del members[MEMBERS:]

    def tell(self, class_names: Sequence[str]) -> dict[str, Any]:
        """Return what was counted, as a run directory keeps it.

        ``usage`` is how many layers each sprite fills. ``counts`` has a row for each of the
        ``classes`` that occur, and a column for nothing and for each sprite. ``names`` are the
        classes that sprites stand for, each for one at most (Hungarian matching), else None.
        """
        told = {"images": self.images, "usage": self.usage.counts.tolist()}
        if not self.unit:
            return told
        sprites = len(self.usage.counts)
        table = torch.zeros(len(self.confusion.table), sprites + 1, dtype=torch.float64)
        table[:, : self.confusion.table.shape[1]] = self.confusion.table
        known = [BACKGROUND, *class_names] if self.unit == "pixels" else list(class_names)
        known += [f"class {number}" for number in range(len(known), len(table))]
        occur = [row for row in range(len(table)) if table[row].sum() > 0]
        names: list[str | None] = [None] * sprites
        for row, column in zip(*(x.tolist() for x in assign(table[occur])), strict=True):
            if column > 0 and table[occur[row], column] > 0:
                names[column - 1] = known[occur[row]]
        return {
            **told,
            "unit": self.unit,
            "classes": [known[row] for row in occur],
            "counts": table[occur].long().tolist(),
            "names": names,
        }

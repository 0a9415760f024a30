"""Stand-ins for datasets: the right shapes and options, and nothing to download."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from celstack import Batch, Dataset, hookimpl

COUNT = 32


class StandIn(Dataset):
    """A few images of noise, with noise for ground truth."""

    side: int
    max_objects = 1

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (3, self.side, self.side)

    def count(self, split: str) -> int:
        return COUNT

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        generator = torch.Generator().manual_seed(self.splits.index(split))
        images = torch.rand(COUNT, *self.image_shape, generator=generator)
        shape = (COUNT, self.side, self.side)
        instances = torch.randint(self.max_objects + 1, shape, generator=generator)
        label = torch.arange(COUNT) % 2
        chosen = list(indices)
        return Batch(images[chosen], instances[chosen], instances[chosen], label[chosen])


class MultiDsprites(StandIn):
    side = 64

    def __init__(self, objects: int | None = None) -> None:
        self.max_objects = 5 if objects is None else objects


class Clevr6(StandIn):
    def __init__(
        self,
        count: int = 34963,
        objects: int | tuple[int, int] = 6,
        side: int = 128,
        samples: int = 8,
    ) -> None:
        # FACTS.md, section 1; fewer or smaller images are for recipes of less cost.
        assert count in (800, 34963) or side < 128
        self.side = side
        self.max_objects = objects if isinstance(objects, int) else max(objects)

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Put nine boxes onto each image, for recipes that start from isolated objects."""
        batch = super().read(split, indices)
        images = 0.5 + 0.002 * (batch.images - 0.5)
        random = torch.Generator().manual_seed(0)
        cell = self.side // 3
        for image in images:
            for box in range(9):
                height, width, down, across = (
                    int(torch.randint(cell // 4, cell // 2, (), generator=random))
                    for _ in range(4)
                )
                row, column = cell * (box // 3) + down, cell * (box % 3) + across
                color = torch.rand(3, 1, 1, generator=random)
                color[box % 3] = 1.0
                color[(box + 1) % 3] = 0.0
                image[:, row : row + height, column : column + width] = color
        return Batch(images, batch.instances, batch.classes, batch.label)


class Gtsrb8(StandIn):
    side = 28


class Svhn(StandIn):
    splits = ("train", "labeled", "test")
    side = 32


class WeizmannHorse(StandIn):
    def __init__(self, size: tuple[int, int] = (128, 128)) -> None:
        assert size[0] == size[1]
        self.side = size[0]


class ImageFolder(StandIn):
    def __init__(
        self, root: Path, size: tuple[int, int] = (128, 128), skip_broken: bool = False
    ) -> None:
        assert size[0] == size[1]
        self.side = size[0]

    def suggest(self) -> dict[str, Any]:
        sizes = {"dataset.size": [32, 32], "sprites.size": [32, 32], "sprites.count": 3}
        others = {"sprites.mask_sigma": 5.0, "selector.window": 5.0}
        return {**sizes, **others, "stages[].epochs": 1, "evaluation.images": COUNT}


@hookimpl
def celstack_datasets() -> dict[str, type[Dataset]]:
    return {
        "multi_dsprites": MultiDsprites,
        "clevr6": Clevr6,
        "gtsrb8": Gtsrb8,
        "svhn": Svhn,
        "weizmann_horse": WeizmannHorse,
        "image_folder": ImageFolder,
    }

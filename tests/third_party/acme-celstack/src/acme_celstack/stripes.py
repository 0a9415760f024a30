"""Stripes: one upright stripe to an image, made on the spot."""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from annotated_types import Ge

from acme_celstack.paint import MIDDLE
from celstack import Batch, Dataset, hookimpl


class Stripes(Dataset):
    """A dark or bright stripe, somewhere on grey."""

    most_objects = 1
    class_names = ("stripe",)

    def __init__(
        self,
        images: Annotated[int, Ge(1)] = 100,
        side: Annotated[int, Ge(4)] = 16,
        shade: Literal["dark", "bright"] = "bright",
    ) -> None:
        self.images = images
        self.side = side
        self.shade = shade

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colours, square."""
        return (3, self.side, self.side)

    def count(self, split: str) -> int:
        """Return as many for testing as for training."""
        return self.images

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Paint; the place of a stripe is a function of split and index."""
        width = self.side // 4
        offset = 1 if split == "test" else 0
        left = torch.tensor([(7 * i + offset) % (self.side - width + 1) for i in indices])
        column = torch.arange(self.side)
        inside = (column >= left[:, None]) & (column < left[:, None] + width)
        inside = inside[:, None, :].expand(-1, self.side, -1)
        paint = 1.0 if self.shade == "bright" else 0.0
        images = torch.where(inside, paint, MIDDLE)[:, None].repeat(1, 3, 1, 1)
        return Batch(images, inside.long(), inside.long())


@hookimpl
def celstack_datasets() -> dict[str, type[Stripes]]:
    """Let recipes say ``use = "acme_stripes"``."""
    return {"acme_stripes": Stripes}

"""Collages: cut-outs that are pasted on a picture, and what is seen of each."""

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.labeled_image import Labeled

CHUNK = 256
"""Images are written so many at a time."""


class Cutout(NamedTuple):
    """Colors (h, w, 3) and opacity (h, w), all in [0, 1]."""

    color: NDArray[np.float64]
    alpha: NDArray[np.float64]


class Collage:
    """A picture (H, W, 3) on which cut-outs are pasted, later ones over earlier ones.

    A pixel belongs to the last cut-out that covers at least half of it.
    """

    def __init__(self, picture: NDArray[np.float64]) -> None:
        self.picture = picture.copy()
        self.instances = np.zeros(picture.shape[:2], np.uint8)
        self.classes = np.zeros(picture.shape[:2], np.uint8)
        self.pasted = 0

    def paste(self, cutout: Cutout, corner: tuple[int, int], kind: int) -> None:
        """Put a cut-out's first pixel in this row and column, as an object of this class."""
        (row, column), (height, width) = corner, cutout.alpha.shape
        window = (slice(row, row + height), slice(column, column + width))
        assert self.instances[window].shape == cutout.alpha.shape, "it lies within the picture"
        self.pasted += 1
        below = self.picture[window]
        self.picture[window] = below + cutout.alpha[..., None] * (cutout.color - below)
        covered = cutout.alpha >= 0.5
        self.instances[window][covered] = self.pasted
        self.classes[window][covered] = kind

    def seen(self) -> NDArray[np.int64]:
        """Count the pixels that belong to each cut-out."""
        return np.bincount(self.instances.ravel(), minlength=self.pasted + 1)[1:]

    def labeled(self) -> Labeled:
        """Return the image in whole levels, and its labels."""
        levels = np.round(255 * self.picture.clip(0, 1)).astype(np.uint8)
        return Labeled(levels, self.instances, self.classes)


def add_collages(
    writer: Writer, total: int, seed: list[int], make: Callable[[np.random.Generator], Collage]
) -> None:
    """Make images one by one, each with a seed of its own, so that more leave these as are."""
    made = (make(np.random.default_rng([*seed, index])).labeled() for index in range(total))
    while chunk := list(islice(made, CHUNK)):
        images, instances, classes = map(np.stack, zip(*chunk, strict=True))
        writer.add(images, instances, classes)

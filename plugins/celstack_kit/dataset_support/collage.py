"""Collages: compose an image by alpha-blending cutouts, with instance and class maps."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.labeled_image import LabeledImage


class Cutout(NamedTuple):
    """Color (h, w, 3) and alpha (h, w), both in [0, 1]."""

    color: NDArray[np.float64]
    alpha: NDArray[np.float64]


class Collage:
    """An image (H, W, 3) onto which cutouts are pasted, each over those before it.

    The pixel is labeled with the last cutout whose alpha there is at least 0.5.
    """

    def __init__(self, background: NDArray[np.float64]) -> None:
        self.image = background.copy()
        self.instances = np.zeros(background.shape[:2], np.uint8)
        self.classes = np.zeros(background.shape[:2], np.uint8)
        self.num_pasted = 0

    def paste(self, cutout: Cutout, corner: tuple[int, int], class_id: int) -> None:
        """Blend a cutout into the image with its top left pixel at ``corner`` (row, column)."""
        (row, column), (height, width) = corner, cutout.alpha.shape
        window = (slice(row, row + height), slice(column, column + width))
        assert self.instances[window].shape == cutout.alpha.shape, "it lies within the image"
        self.num_pasted += 1
        below = self.image[window]
        self.image[window] = below + cutout.alpha[..., None] * (cutout.color - below)
        covered = cutout.alpha >= 0.5
        self.instances[window][covered] = self.num_pasted
        self.classes[window][covered] = class_id

    def visible_pixels(self) -> NDArray[np.int64]:
        """Return the number of pixels labeled with each cutout."""
        return np.bincount(self.instances.ravel(), minlength=self.num_pasted + 1)[1:]

    def labeled(self) -> LabeledImage:
        """Quantize the image to 8 bits, and return it with its label maps."""
        levels = np.round(255 * self.image.clip(0, 1)).astype(np.uint8)
        return LabeledImage(levels, self.instances, self.classes)


def write_collages(
    writer: CacheWriter,
    total: int,
    seed: list[int],
    make: Callable[[np.random.Generator], Collage],
) -> None:
    """Generate ``total`` collages and add them to the writer.

    Image i is seeded by ``[*seed, i]`` alone: a larger total does not change the first images.
    """
    generators = (np.random.default_rng([*seed, index]) for index in range(total))
    writer.add_all(make(generator).labeled() for generator in generators)

"""Cut patches out around blobs, turned and resized so that equal objects look alike."""

import math
from collections.abc import Sequence

import attrs
import numpy as np
from jaxtyping import Float
from scipy import ndimage

from celstack_kit.prototypes.pixels.blobs.isolated import Blob, longest_side

SMALL_QUANTILE, LARGE_QUANTILE = 0.1, 0.98
"""Quantiles of the blobs' sides that count as the smallest and the largest."""
BLUR = 0.5
"""Blur of a blob, in pixels, for each time that it is larger than the smallest."""


@attrs.frozen
class Framing:
    """How blobs are brought to a common frame.

    Args:
        unit: Side of the frame in pixels of the images; None if each blob fills the frame.
        angles: The angles at which the patches of a blob are cut out, in radians.
        smallest: Blobs larger than this are blurred to its resolution, if they are resized.
    """

    unit: float | None
    angles: tuple[float, ...]
    smallest: float

    @classmethod
    def of(cls, blobs: Sequence[Blob], resized: bool, turns: int) -> "Framing":
        """Return the framing for these blobs."""
        sides = longest_side(blobs)
        small, large = np.quantile(sides, [SMALL_QUANTILE, LARGE_QUANTILE]).tolist()
        angles = tuple(2 * math.pi * n / turns for n in range(turns))
        return cls(None if resized else large, angles, small)

    def cut(
        self, blob: Blob, size: tuple[int, int], share: float, blurred: bool
    ) -> Float[np.ndarray, "T D h w"]:
        """Return the blob at all angles: colors, continued around it, and its mask.

        Args:
            blob: The blob.
            size: Height and width of the patches.
            share: Share of the patch's longer side that the frame covers.
            blurred: Whether to blur the blob to the resolution of the smallest one.
        """
        center, side = self._center_and_side(blob)
        inner = ndimage.binary_erosion(blob.mask)
        inner = inner if inner.any() else blob.mask
        nearest = ndimage.distance_transform_edt(
            ~inner, return_distances=False, return_indices=True
        )
        planes = np.concatenate([blob.pixels[:, nearest[0], nearest[1]], blob.mask[None]])
        if blurred and self.unit is None:
            blur = BLUR * math.sqrt(max(0.0, (side / self.smallest) ** 2 - 1))
            planes = ndimage.gaussian_filter(planes, (0, blur, blur))
        step = side / (share * max(size))
        down, across = (step * (np.arange(length) - (length - 1) / 2) for length in size)
        grid = np.stack(np.meshgrid(down, across, indexing="ij"))
        return np.stack([_sample(planes, center, grid, angle) for angle in self.angles])

    def _center_and_side(self, blob: Blob) -> tuple[Float[np.ndarray, "..."], float]:
        height, width = blob.mask.shape
        center, side = (
            np.array([(height - 1) / 2, (width - 1) / 2]),
            float(max(height, width) - 2),
        )
        if len(self.angles) > 1:
            # These do not depend on how the blob is turned.
            pixels = np.argwhere(blob.mask)
            center = pixels.mean(0)
            side = 2 * float(np.hypot(*(pixels - center).T).max()) + 1
        return center, self.unit or side


def _sample(
    planes: Float[np.ndarray, "D h w"],
    center: Float[np.ndarray, "..."],
    grid: Float[np.ndarray, "2 H W"],
    angle: float,
) -> Float[np.ndarray, "D H W"]:
    """Sample planes on a grid around the center, turned clockwise on screen by the angle."""
    cos, sin = math.cos(angle), math.sin(angle)
    points = np.tensordot([[cos, -sin], [sin, cos]], grid, axes=1) + center[:, None, None]
    *colors, mask = planes
    found = [ndimage.map_coordinates(one, points, order=1, mode="nearest") for one in colors]
    return np.stack([*found, ndimage.map_coordinates(mask, points, order=1)])

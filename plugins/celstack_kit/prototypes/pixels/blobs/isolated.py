"""Find blobs of the foreground that seem to be single objects."""

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

MIN_AREA_SHARE = 0.0035
"""Smaller blobs, as a share of the canvas, are left out."""
MAX_HUE_DISTANCE = 0.08
"""Pixels whose share of a channel differs more from the blob's median have another hue."""
MAX_OTHER_HUES = 0.2
"""Blobs with a larger share of pixels of another hue are several objects."""


@attrs.frozen(eq=False)
class Blob:
    """A connected part of the foreground of an image, cut out with a margin of a pixel."""

    image: int
    pixels: Float[np.ndarray, "C h w"]
    mask: Bool[np.ndarray, "h w"]
    row: int
    """Row of the top left pixel in the image."""
    column: int


def find_isolated(
    images: Float[np.ndarray, "N C H W"], foreground: Bool[np.ndarray, "N H W"]
) -> list[Blob]:
    """Return the blobs that are large enough, not cut off by the border, and of one hue."""
    return [
        blob
        for index, (image, mask) in enumerate(zip(images, foreground, strict=True))
        for blob in _blobs(index, image, mask)
        if _has_one_hue(blob)
    ]


def _blobs(
    index: int, image: Float[np.ndarray, "C H W"], mask: Bool[np.ndarray, "H W"]
) -> Iterator[Blob]:
    height, width = mask.shape
    labels, _ = ndimage.label(mask)
    for label, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        inside = rows.start > 0 and rows.stop < height and columns.start > 0
        if not (inside and columns.stop < width):
            continue
        box = slice(rows.start - 1, rows.stop + 1), slice(columns.start - 1, columns.stop + 1)
        own = labels[box] == label
        if own.sum() >= MIN_AREA_SHARE * mask.size:
            yield Blob(
                index, image[(slice(None), *box)], own, rows.start - 1, columns.start - 1
            )


def _has_one_hue(blob: Blob) -> bool:
    colors = blob.pixels[:, blob.mask]
    shares = colors / (colors.sum(0) + 1e-3)
    middle = np.median(shares, axis=1, keepdims=True)
    return float((np.abs(shares - middle).max(0) > MAX_HUE_DISTANCE).mean()) < MAX_OTHER_HUES


def longest_side(blobs: Sequence[Blob]) -> Float[np.ndarray, "..."]:
    """Return the longer side of each blob's bounding box, in pixels."""
    return np.array([max(blob.mask.shape) - 2 for blob in blobs], dtype=float)

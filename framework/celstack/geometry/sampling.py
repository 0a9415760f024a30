"""Points and pixels: the convention of coordinates, and bilinear sampling.

Convention:
    Points are (x, y), y down, in units of half the longer side of the canvas or image, so
    that rotations do not distort on any aspect ratio: the longer axis runs over [-1, 1], the
    shorter over less. Pixel centers lie half a pixel inside (``align_corners=False``). A warp
    maps a point of the canvas to the point of the sprite that is shown there; the sprite has
    coordinates of its own, in units of half its own longer side.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import grid_sample


def extent(height: int, width: int) -> tuple[float, float]:
    """Return the largest x and y on a canvas of this size.

    For example, ``extent(20, 40)`` is (1.0, 0.5).
    """
    longer = max(height, width)
    return width / longer, height / longer


def pixel_centers(height: int, width: int, like: Tensor) -> Float[Tensor, "m 2"]:
    """Return the pixel centers of a canvas, row by row, with m = height * width.

    Args:
        height: Height of the canvas in pixels.
        width: Width of the canvas in pixels.
        like: A tensor whose dtype and device are used.
    """
    reach_x, reach_y = extent(height, width)
    x = ((torch.arange(width).to(like) + 0.5) * (2 / width) - 1) * reach_x
    y = ((torch.arange(height).to(like) + 0.5) * (2 / height) - 1) * reach_y
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).view(-1, 2)


def sample_points(
    images: Float[Tensor, "n D h w"],
    points: Float[Tensor, "n m 2"],
    outside: Literal["zeros", "border"],
) -> Float[Tensor, "n D m"]:
    """Sample images at points, by bilinear interpolation.

    Args:
        images: One image for each list of points.
        points: Points in the units of each image.
        outside: What images are outside: transparent and black, or their border repeated.
    """
    height, width = images.shape[-2:]
    if height != width:
        points = points / points.new_tensor(extent(height, width))
    found = grid_sample(
        images, points[:, None], mode="bilinear", padding_mode=outside, align_corners=False
    )
    return found[:, :, 0]


def sample_canvas(
    images: Float[Tensor, "n D h w"],
    points: Float[Tensor, "n m 2"],
    canvas: tuple[int, int],
    outside: Literal["zeros", "border"],
) -> Float[Tensor, "n D H W"]:
    """Sample images at one point for each pixel of a canvas.

    As ``sample_points``, with m = H * W points in the order of ``pixel_centers`` and the
    result arranged as images of the size ``canvas``.
    """
    return sample_points(images, points, outside).unflatten(2, canvas)


def points_meet_image(
    points: Float[Tensor, "n m 2"], size: tuple[int, int]
) -> Bool[Tensor, "n m"]:
    """Return which points sample anything of an image of this size, not only its outside."""
    return (points.abs() < _limit(points, size)).all(-1)


def boxes_meet_image(
    low: Float[Tensor, "n m 2"], high: Float[Tensor, "n m 2"], size: tuple[int, int]
) -> Bool[Tensor, "n m"]:
    """Return which boxes contain a point that samples anything of an image of this size."""
    limit = _limit(low, size)
    return ((low < limit) & (high > -limit)).all(-1)


def _limit(points: Tensor, size: tuple[int, int]) -> Float[Tensor, " 2"]:
    """Return how far from the center bilinear interpolation extends the image."""
    height, width = size
    reach_x, reach_y = extent(height, width)
    return points.new_tensor([reach_x * (1 + 1 / width), reach_y * (1 + 1 / height)])

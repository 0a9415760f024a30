"""Points and pixels: the one convention of all geometry.

Convention:
    Points are (x, y), y down, in units of half the longer side, so that a turn is a turn
    on any canvas: the longer axis runs over [-1, 1], the shorter over less. Pixel centres
    lie half a pixel inside (``align_corners=False``). A warp says where a canvas point
    looks in the sprite, whose own longer side runs over [-1, 1].
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import grid_sample


def extent(height: int, width: int) -> tuple[float, float]:
    """Return how far x and y reach on a canvas of this size."""
    longer = max(height, width)
    return width / longer, height / longer


def pixel_centers(height: int, width: int, like: Tensor) -> Float[Tensor, "m 2"]:
    """List the pixel centres of a canvas, row by row."""
    reach_x, reach_y = extent(height, width)
    x = ((torch.arange(width).to(like) + 0.5) * (2 / width) - 1) * reach_x
    y = ((torch.arange(height).to(like) + 0.5) * (2 / height) - 1) * reach_y
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).view(-1, 2)


def sample_points(
    images: Float[Tensor, "n D h w"],
    points: Float[Tensor, "n m 2"],
    outside: Literal["zeros", "border"],
) -> Float[Tensor, "n D m"]:
    """Look the points up in the images, bilinearly."""
    grid = (points / points.new_tensor(extent(*images.shape[-2:])))[:, None]
    found = grid_sample(
        images, grid, mode="bilinear", padding_mode=outside, align_corners=False
    )
    return found[:, :, 0]


def sample_canvas(
    images: Float[Tensor, "n D h w"],
    points: Float[Tensor, "n m 2"],
    canvas: tuple[int, int],
    outside: Literal["zeros", "border"],
) -> Float[Tensor, "n D H W"]:
    """Look up all points of a canvas, and lay the answers out as one."""
    return sample_points(images, points, outside).unflatten(2, canvas)


def points_meet_image(
    points: Float[Tensor, "n m 2"], size: tuple[int, int]
) -> Bool[Tensor, "n m"]:
    """Tell which points find anything at all in an image of this size."""
    return (points.abs() < _limit(points, size)).all(-1)


def boxes_meet_image(
    low: Float[Tensor, "n m 2"], high: Float[Tensor, "n m 2"], size: tuple[int, int]
) -> Bool[Tensor, "n m"]:
    """Tell which boxes of points hold one that finds anything in an image of this size."""
    limit = _limit(low, size)
    return ((low < limit) & (high > -limit)).all(-1)


def _limit(points: Tensor, size: tuple[int, int]) -> Float[Tensor, " 2"]:
    """Return how far from the centre interpolation still finds a trace of the image."""
    height, width = size
    reach_x, reach_y = extent(height, width)
    return points.new_tensor([reach_x * (1 + 1 / width), reach_y * (1 + 1 / height)])

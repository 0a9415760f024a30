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
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample


def extent(height: int, width: int) -> tuple[float, float]:
    """Return how far x and y reach on a canvas of this size."""
    longer = max(height, width)
    return width / longer, height / longer


def canvas_points(height: int, width: int, like: Tensor) -> Float[Tensor, "m 2"]:
    """List the pixel centres of a canvas, row by row."""
    reach_x, reach_y = extent(height, width)
    x = ((torch.arange(width).to(like) + 0.5) * (2 / width) - 1) * reach_x
    y = ((torch.arange(height).to(like) + 0.5) * (2 / height) - 1) * reach_y
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).view(-1, 2)


def sample(
    images: Float[Tensor, "n D h w"],
    points: Float[Tensor, "n m 2"],
    canvas: tuple[int, int],
    outside: Literal["zeros", "border"],
) -> Float[Tensor, "n D H W"]:
    """Look up the points in the images, bilinearly, and lay the answers out as a canvas."""
    reach = points.new_tensor(extent(*images.shape[-2:]))
    grid = (points / reach).view(len(points), *canvas, 2)
    return grid_sample(images, grid, mode="bilinear", padding_mode=outside, align_corners=False)

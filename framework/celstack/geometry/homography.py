"""Homographies (projective maps) as matrices.

Convention:
    (u, v, z) = matrix (x, y, 1): the point (x, y) of the canvas shows the point
    (u / z, v / z) of the sprite, and z is called its depth. An affine map has z = 1 everywhere
    and is stored without the third row, as a 2 x 3 matrix.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from celstack.geometry.sampling import extent
from celstack.geometry.windows import Windows

MIN_DEPTH = 1e-3
"""Points of depth 0 are mapped to infinity. With |depth| bounded from below they are mapped
a thousand half sprites away instead: far outside, and without NaN in gradients."""
BOX_MARGIN_PIXELS = 0.01
"""How much ``bounding_box`` is enlarged to allow for rounding errors."""


def clamp_depth(depth: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Move depths that are nearly 0 away from it, without changing their sign."""
    return torch.where(depth < 0, depth.clamp_max(-MIN_DEPTH), depth.clamp_min(MIN_DEPTH))


def compose_matrices(
    second: Float[Tensor, "*n r 3"], first: Float[Tensor, "*n q 3"]
) -> Float[Tensor, "*n s 3"]:
    """Return the map that applies the first matrix, then the second."""
    if first.shape[-2] == 3:
        return to_3x3(second) @ first
    # The third row of the first is (0, 0, 1).
    return second[..., :2] @ first + pad(second[..., 2:], (2, 0))


def factor_out(
    both: Float[Tensor, "*n 2 3"], first: Float[Tensor, "*n 2 3"]
) -> Float[Tensor, "*n 2 3"]:
    """Solve ``compose_matrices(second, first) == both`` for the second matrix."""
    second = both[..., :2] @ torch.linalg.inv(first[..., :2])
    return torch.cat([second, both[..., 2:] - second @ first[..., 2:]], dim=-1)


def to_3x3(matrix: Float[Tensor, "*n r 3"]) -> Float[Tensor, "*n 3 3"]:
    """Return matrices as 3 x 3; affine ones get the third row (0, 0, 1)."""
    if matrix.shape[-2] == 3:
        return matrix
    last = matrix.new_tensor([0.0, 0.0, 1.0]).expand(*matrix.shape[:-2], 1, 3)
    return torch.cat([matrix, last], dim=-2)


def to_grid_units(
    matrix: Float[Tensor, "k r 3"], size: tuple[int, int]
) -> Float[Tensor, "k r 3"]:
    """Change the units of the output to those of torch's ``grid_sample``.

    Args:
        matrix: Maps to points of images, in units of half their longer side.
        size: Height and width of the images.

    Returns:
        The same maps with both axes of the images running over [-1, 1].
    """
    reach = extent(*size)
    if reach == (1.0, 1.0):
        return matrix
    return matrix / matrix.new_tensor([*reach, 1.0][: matrix.shape[1]])[:, None]


def sampling_grid(matrix: Float[Tensor, "k r 3"], windows: Windows) -> Float[Tensor, "k h w 2"]:
    """Map all pixel centers of windows, for ``grid_sample``.

    Args:
        matrix: The maps; k is a multiple of the number of windows, those of a window follow
            one another.
        windows: Windows on the canvases.
    """
    x, y = windows.coordinates(matrix)
    times = len(matrix) // len(windows)
    x, y = x.repeat_interleave(times, 0)[:, None], y.repeat_interleave(times, 0)[:, None]
    # A linear map is the sum of a function of the column and a function of the row.
    across = torch.addcmul(matrix[:, :, 2:], matrix[:, :, :1], x)[:, :, None]
    down = (matrix[:, :, 1:2] * y)[..., None]
    u, v = across[:, 0] + down[:, 0], across[:, 1] + down[:, 1]
    if matrix.shape[1] == 2:
        return _pairs(u, v)
    z = across[:, 2] + down[:, 2]
    # The depth is linear: if it is positive in the corners, it is positive everywhere.
    corners = z.detach()[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    if z.device.type != "cpu" or bool((corners < MIN_DEPTH).any()):
        z = clamp_depth(z)
    nearness = z.reciprocal()
    return _pairs(u * nearness, v * nearness)


def bounding_box(
    matrix: Float[Tensor, "k r 3"], canvas: tuple[int, int], size: tuple[int, int]
) -> tuple[Float[Tensor, "k 2"], Float[Tensor, "k 2"]]:
    """Bound the pixels of a canvas that a warped image covers.

    Args:
        matrix: Maps from the canvas to the image, in the units of ``to_grid_units``.
        canvas: Height and width of the canvas.
        size: Height and width of the image.

    Returns:
        The least and the greatest (x, y) in pixels. NaN where the map is singular, or where
        points of depth 0 lie on the canvas or the image: there is no bound.
    """
    matrix = to_3x3(matrix.double())
    rows = matrix.unbind(1)
    back = torch.stack([torch.linalg.cross(rows[n - 2], rows[n - 1]) for n in range(3)], dim=2)
    # Bilinear interpolation extends the image by half a pixel.
    corners = back @ _corners(1 + 1 / size[1], 1 + 1 / size[0])
    across, down, depth = corners.unbind(1)
    reach = extent(*canvas)
    seen = matrix[:, 2:] @ _corners(*reach)
    known = _one_sided(depth, 0.0) & _one_sided(seen[:, 0], MIN_DEPTH)
    x = ((across / depth) / reach[0] + 1) * (canvas[1] / 2) - 0.5
    y = ((down / depth) / reach[1] + 1) * (canvas[0] / 2) - 0.5
    points = torch.where(known[:, None, None], torch.stack([x, y], 2), torch.nan)
    return points.amin(1) - BOX_MARGIN_PIXELS, points.amax(1) + BOX_MARGIN_PIXELS


def _pairs(u: Float[Tensor, "*any"], v: Float[Tensor, "*any"]) -> Float[Tensor, "*any 2"]:
    # The same as torch.stack([u, v], -1), in a third of the time.
    return torch.view_as_real(torch.complex(u, v))


def _corners(x: float, y: float) -> Float[Tensor, "3 4"]:
    signs = torch.tensor([[-1, 1, -1, 1], [-1, -1, 1, 1], [1, 1, 1, 1]], dtype=torch.float64)
    return signs * signs.new_tensor([[x], [y], [1.0]])


def _one_sided(depth: Float[Tensor, "k 4"], least: float) -> Bool[Tensor, " k"]:
    return (depth > least).all(1) | (depth < -least).all(1)

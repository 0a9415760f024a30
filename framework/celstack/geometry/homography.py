"""Homographies: maps that keep lines straight, as matrices.

Convention:
    (u, v, z) = matrix (x, y, 1), and the point (x, y) looks at (u / z, v / z). A map that
    keeps parallels parallel has z = 1 everywhere and no third row: its matrix is 2 x 3.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from celstack.geometry.sampling import extent
from celstack.geometry.windows import Windows

MIN_DEPTH = 1e-3
"""Points of the horizon look at infinity. A depth kept off zero, on its own side, makes that
a thousand half sprites away: far outside, and no NaN in a gradient."""
BOX_MARGIN_PIXELS = 0.01
"""By how many pixels a box may err when it is computed."""


def clamp_depth(depth: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Keep depths off zero."""
    return torch.where(depth < 0, depth.clamp_max(-MIN_DEPTH), depth.clamp_min(MIN_DEPTH))


def compose_matrices(
    second: Float[Tensor, "*n r 3"], first: Float[Tensor, "*n q 3"]
) -> Float[Tensor, "*n s 3"]:
    """Return the map that looks through the first, then through the second."""
    if first.shape[-2] == 3:
        return to_3x3(second) @ first
    # The third row of the first is (0, 0, 1).
    return second[..., :2] @ first + pad(second[..., 2:], (2, 0))


def factor_out(
    both: Float[Tensor, "*n 2 3"], first: Float[Tensor, "*n 2 3"]
) -> Float[Tensor, "*n 2 3"]:
    """Return the map to look through after the first, so that the two are both."""
    second = both[..., :2] @ torch.linalg.inv(first[..., :2])
    return torch.cat([second, both[..., 2:] - second @ first[..., 2:]], dim=-1)


def to_3x3(matrix: Float[Tensor, "*n r 3"]) -> Float[Tensor, "*n 3 3"]:
    """Add the third row where it was left out."""
    if matrix.shape[-2] == 3:
        return matrix
    last = matrix.new_tensor([0.0, 0.0, 1.0]).expand(*matrix.shape[:-2], 1, 3)
    return torch.cat([matrix, last], dim=-2)


def to_grid_units(
    matrix: Float[Tensor, "k r 3"], size: tuple[int, int]
) -> Float[Tensor, "k r 3"]:
    """Measure what is looked at in halves of its own sides, as torch does."""
    reach = extent(*size)
    if reach == (1.0, 1.0):
        return matrix
    return matrix / matrix.new_tensor([*reach, 1.0][: matrix.shape[1]])[:, None]


def sampling_grid(matrix: Float[Tensor, "k r 3"], windows: Windows) -> Float[Tensor, "k h w 2"]:
    """Return where all pixels of windows look; k is a multiple of the number of windows."""
    x, y = windows.coordinates(matrix)
    times = len(matrix) // len(windows)
    x, y = x.repeat_interleave(times, 0)[:, None], y.repeat_interleave(times, 0)[:, None]
    # Maps are sums of what depends on the column and what depends on the row.
    across = torch.addcmul(matrix[:, :, 2:], matrix[:, :, :1], x)[:, :, None]
    down = (matrix[:, :, 1:2] * y)[..., None]
    u, v = across[:, 0] + down[:, 0], across[:, 1] + down[:, 1]
    if matrix.shape[1] == 2:
        return _pairs(u, v)
    z = across[:, 2] + down[:, 2]
    # The depth is linear: where it is right in the corners, it is everywhere.
    corners = z.detach()[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    if z.device.type != "cpu" or bool((corners < MIN_DEPTH).any()):
        z = clamp_depth(z)
    nearness = z.reciprocal()
    return _pairs(u * nearness, v * nearness)


def bounding_box(
    matrix: Float[Tensor, "k r 3"], canvas: tuple[int, int], size: tuple[int, int]
) -> tuple[Float[Tensor, "k 2"], Float[Tensor, "k 2"]]:
    """Bound the pixels (x, y) that find something in an image of this size.

    The matrix is measured in halves. Where a horizon crosses canvas or image, or the map is
    no map at all, the box has no bounds.
    """
    matrix = to_3x3(matrix.double())
    rows = matrix.unbind(1)
    back = torch.stack([torch.linalg.cross(rows[n - 2], rows[n - 1]) for n in range(3)], dim=2)
    # Interpolation finds a trace of the image up to half a pixel outside of it.
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
    # The same as stacking them along a last axis, in a third of the time.
    return torch.view_as_real(torch.complex(u, v))


def _corners(x: float, y: float) -> Float[Tensor, "3 4"]:
    signs = torch.tensor([[-1, 1, -1, 1], [-1, -1, 1, 1], [1, 1, 1, 1]], dtype=torch.float64)
    return signs * signs.new_tensor([[x], [y], [1.0]])


def _one_sided(depth: Float[Tensor, "k 4"], least: float) -> Bool[Tensor, " k"]:
    return (depth > least).all(1) | (depth < -least).all(1)

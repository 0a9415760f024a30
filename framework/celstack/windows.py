"""Windows: the part of the canvas from which a warped sprite can be seen at all.

Sprites are mostly much smaller than the canvas. What is the same for all candidates, because
none of them reaches there, need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack.sampling import canvas_points, look_up, sees, sees_within

Pull = Callable[[Tensor], Tensor]
"""From points (g, m, 2) of g canvases to points (k, m, 2) of k sprites, k a multiple of g."""
CELLS = 32
"""Canvases are searched in about as many cells along their shorter side."""
SLACK = 0.25
"""How much further than its corners a cell may look, as a share of its own extent."""


@torch.no_grad()
def find_windows(
    pull: Pull, canvases: int, canvas: tuple[int, int], size: tuple[int, int], like: Tensor
) -> Int[Tensor, "g w"]:
    """Return the pixels of a window on each canvas, all windows of one size.

    ``pull`` says where points of the canvases look in sprites of this size; it may answer
    for several sprites to a canvas, one after the other, which then share its window.
    """
    height, width = canvas
    if like.device.type != "cpu":
        # The size of a window would have to come back from the device; use all pixels.
        return torch.arange(height * width, device=like.device).expand(canvases, -1)
    points = canvas_points(height, width, like).view(height, width, 2)
    step = max(1, min(canvas) // CELLS)
    rows, columns = _lattice(height, step), _lattice(width, step)
    pulled = pull(points[rows][:, columns].flatten(0, 1).expand(canvases, -1, -1))
    pulled = pulled.view(-1, len(rows), len(columns), 2)
    if step == 1:
        seen = sees(pulled.flatten(1, 2), size).view(pulled.shape[:3])
    else:
        seen = _cells_seen(pulled, size)
    seen = seen.view(canvases, -1, *seen.shape[1:]).any(1)
    return _pixels(seen, rows, columns, canvas)


def look_through(
    images: Float[Tensor, "k D h w"],
    pull: Pull,
    canvases: int,
    canvas: tuple[int, int],
) -> tuple[Int[Tensor, "g m"], Float[Tensor, "k m 2"], Float[Tensor, "k D m"]]:
    """Look sprites up where they can be seen: return the windows, the points, what is there."""
    size = (images.shape[-2], images.shape[-1])
    pixels = find_windows(pull, canvases, canvas, size, like=images)
    points = pull(points_at(canvas_points(*canvas, like=images), pixels))
    return pixels, points, look_up(images, points, "zeros")


def points_at(
    everywhere: Float[Tensor, "m 2"], pixels: Int[Tensor, "g w"]
) -> Float[Tensor, "g w 2"]:
    """Return the canvas points of windows; one copy for all where these are whole canvases."""
    if pixels.shape[1] == len(everywhere):
        return everywhere.expand(len(pixels), -1, -1)
    return everywhere[pixels]


def repeat(points: Float[Tensor, "n m 2"], times: int) -> Float[Tensor, "k m 2"]:
    """Repeat each canvas's points; canvases that share one copy go on sharing it."""
    if points.stride(0) == 0:
        return points[:1].expand(len(points) * times, -1, -1)
    return points.repeat_interleave(times, dim=0)


def _lattice(length: int, step: int) -> Int[Tensor, " n"]:
    return torch.cat([torch.arange(0, length - 1, step), torch.tensor([length - 1])])


def _cells_seen(
    corners: Float[Tensor, "n r c 2"], size: tuple[int, int]
) -> Bool[Tensor, "n r-1 c-1"]:
    """Tell which cells may see the sprite. Warps are smooth: a cell looks near its corners."""
    low, high = corners, corners
    for axis in (1, 2):
        first, second = (
            low.narrow(axis, 0, low.shape[axis] - 1),
            low.narrow(axis, 1, low.shape[axis] - 1),
        )
        low = torch.minimum(first, second)
        first, second = (
            high.narrow(axis, 0, high.shape[axis] - 1),
            high.narrow(axis, 1, high.shape[axis] - 1),
        )
        high = torch.maximum(first, second)
    slack = SLACK * (high - low)
    seen = sees_within((low - slack).flatten(1, 2), (high + slack).flatten(1, 2), size)
    return seen.view(low.shape[:3])


def _pixels(
    seen: Bool[Tensor, "g r c"],
    rows: Int[Tensor, " R"],
    columns: Int[Tensor, " C"],
    canvas: tuple[int, int],
) -> Int[Tensor, "g w"]:
    top, height = _span(seen.any(2), rows, canvas[0])
    left, width = _span(seen.any(1), columns, canvas[1])
    down = top[:, None] + torch.arange(height)
    across = left[:, None] + torch.arange(width)
    return (down[:, :, None] * canvas[1] + across[:, None]).flatten(1)


def _span(
    seen: Bool[Tensor, "g r"], lattice: Int[Tensor, " R"], length: int
) -> tuple[Int[Tensor, " g"], int]:
    """Return where the seen part of each line begins, and how long the longest part is."""
    flags = seen.to(torch.uint8)
    first, last = flags.argmax(1), seen.shape[1] - 1 - flags.flip(1).argmax(1)
    # A cell ends where the next begins; the last one, where the line does.
    begin, end = lattice[first], lattice[last + len(lattice) - seen.shape[1]]
    longest = int(torch.where(seen.any(1), end - begin + 1, 1).max())
    return begin.clamp_max(length - longest), longest

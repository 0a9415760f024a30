"""SpriteWarp: from canvases to sprites by a chain of warps, sampled once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import grid_sample

from celstack.geometry.homography import (
    bounding_box,
    compose_matrices,
    sampling_grid,
    to_grid_units,
)
from celstack.geometry.sampling import (
    boxes_meet_image,
    pixel_centers,
    points_meet_image,
    sample_points,
)
from celstack.geometry.windows import Windows, enclosing_windows
from celstack.model.transform_chain import TransformChain

Pull = Callable[[Tensor], Tensor]
"""From points (g, m, 2) of g canvases to points (k, m, 2) of k sprites, k a multiple of g."""
CELLS = 32
"""About how many cells the shorter side of a canvas is divided into when it is searched."""
SLACK = 0.25
"""How far points of a cell may be mapped outside its mapped corners, relative to its size."""


@attrs.frozen(eq=False)
class SpriteWarp:
    """The maps from g canvases to k sprites.

    The sprites of a canvas follow one another, k / g for each. Where the maps are
    homographies, ``matrix`` is the same as ``pull``, and cheaper. ``placed`` is whether layers
    place their sprites; a sprite that is not placed fills the canvas in its rest pose.
    """

    canvases: int
    pull: Pull
    matrix: Float[Tensor, "k r 3"] | None = None
    placed: bool = True

    @classmethod
    def from_chains(
        cls,
        layer_chain: TransformChain,
        layer_params: Float[Tensor, "g Q"],
        sprite_chain: TransformChain,
        sprite_params: Float[Tensor, "n P"],
    ) -> SpriteWarp:
        """Compose the warps of layers with those of their sprites.

        If the sprite chain has no warp, all sprites of a canvas are warped in the same way,
        and k is g.

        Args:
            layer_chain: The transforms of layers.
            layer_params: Their parameters for each canvas.
            sprite_chain: The transforms of sprites, applied before those of layers.
            sprite_params: Their parameters for each sprite; n is a multiple of g.
        """
        canvases = len(layer_params)
        matrix = layer_chain.matrix(layer_params)
        if not sprite_chain.has_warp():
            pull_layer = partial(layer_chain.pull, params=layer_params)
            return cls(canvases, pull_layer, matrix, layer_chain.has_warp())
        times = len(sprite_params) // canvases
        of_sprite = sprite_chain.matrix(sprite_params)
        if matrix is not None and of_sprite is not None:
            grouped = of_sprite.unflatten(0, (canvases, times))
            of_layer = matrix[:, None].expand(-1, times, -1, -1)
            matrix = compose_matrices(grouped, of_layer).flatten(0, 1)
        else:
            matrix = None

        def pull(points: Tensor) -> Tensor:
            points = layer_chain.pull(points, layer_params)
            return sprite_chain.pull(repeat(points, times), sprite_params)

        return cls(canvases, pull, matrix, layer_chain.has_warp())


def warp_sprites(
    images: Float[Tensor, "k D h w"], warp: SpriteWarp, canvas: tuple[int, int]
) -> tuple[Windows, Float[Tensor, "k D v u"]]:
    """Warp sprites onto canvases.

    Args:
        images: The sprites.
        warp: The maps from canvases to the sprites.
        canvas: Height and width of the canvases.

    Returns:
        A window on each canvas and the sprites in it; sprites are transparent elsewhere.
    """
    size = (images.shape[-2], images.shape[-1])
    windows = find_windows(warp, canvas, size, images)
    if warp.matrix is not None:
        where = sampling_grid(to_grid_units(warp.matrix, size), windows)
        return windows, grid_sample(images, where, padding_mode="zeros", align_corners=False)
    points = warp.pull(_points(windows, images))
    found = sample_points(images, points, "zeros")
    return windows, found.unflatten(2, (windows.height, windows.width))


@torch.no_grad()
def find_windows(
    warp: SpriteWarp, canvas: tuple[int, int], size: tuple[int, int], like: Tensor
) -> Windows:
    """Return a window on each canvas that contains all of its sprites, which have this size."""
    if like.device.type != "cpu":
        # Computing window sizes would synchronize with the device; use whole canvases.
        return Windows.whole(canvas, warp.canvases)
    if warp.matrix is not None:
        low, high = bounding_box(to_grid_units(warp.matrix, size), canvas, size)
    elif not warp.placed:
        # Searching would map most points twice, to find windows about as large as the canvas.
        return Windows.whole(canvas, warp.canvases)
    else:
        low, high = _search(warp, canvas, size, like)
    low, high = low.view(warp.canvases, -1, 2), high.view(warp.canvases, -1, 2)
    return enclosing_windows(low.amin(1), high.amax(1), canvas)


def repeat(points: Float[Tensor, "n m 2"], times: int) -> Float[Tensor, "k m 2"]:
    """Repeat each canvas's points; if all canvases share one copy, so does the result."""
    if points.stride(0) == 0:
        return points[:1].expand(len(points) * times, -1, -1)
    return points.repeat_interleave(times, dim=0)


def _points(windows: Windows, like: Tensor) -> Float[Tensor, "g m 2"]:
    """Return the pixel centers of windows; one shared copy if these are whole canvases."""
    if windows.are_whole:
        return pixel_centers(*windows.canvas, like=like).expand(len(windows), -1, -1)
    x, y = windows.coordinates(like)
    pairs = torch.broadcast_tensors(x[:, None, :], y[:, :, None])
    return torch.stack(pairs, dim=-1).flatten(1, 2)


def _search(
    warp: SpriteWarp, canvas: tuple[int, int], size: tuple[int, int], like: Tensor
) -> tuple[Float[Tensor, "g 2"], Float[Tensor, "g 2"]]:
    """Bound the pixels of each canvas that show a sprite, by mapping a lattice of them."""
    height, width = canvas
    points = pixel_centers(height, width, like).view(height, width, 2)
    step = max(1, min(canvas) // CELLS)
    rows, columns = _lattice(height, step), _lattice(width, step)
    pulled = warp.pull(points[rows][:, columns].flatten(0, 1).expand(warp.canvases, -1, -1))
    pulled = pulled.view(-1, len(rows), len(columns), 2)
    if step == 1:
        seen = points_meet_image(pulled.flatten(1, 2), size).view(pulled.shape[:3])
    else:
        seen = _cells_seen(pulled, size)
    seen = seen.view(warp.canvases, -1, *seen.shape[1:]).any(1)
    left, right = _span(seen.any(1), columns)
    top, bottom = _span(seen.any(2), rows)
    return torch.stack([left, top], 1).double(), torch.stack([right, bottom], 1).double()


def _lattice(length: int, step: int) -> Int[Tensor, " n"]:
    return torch.cat([torch.arange(0, length - 1, step), torch.tensor([length - 1])])


def _cells_seen(
    corners: Float[Tensor, "n r c 2"], size: tuple[int, int]
) -> Bool[Tensor, "n r-1 c-1"]:
    """Return which cells may show the sprite: smooth warps map a cell near its corners."""
    low, high = corners, corners
    for axis in (1, 2):
        pairs = low.shape[axis] - 1
        low = torch.minimum(low.narrow(axis, 0, pairs), low.narrow(axis, 1, pairs))
        high = torch.maximum(high.narrow(axis, 0, pairs), high.narrow(axis, 1, pairs))
    slack = SLACK * (high - low)
    seen = boxes_meet_image((low - slack).flatten(1, 2), (high + slack).flatten(1, 2), size)
    return seen.view(low.shape[:3])


def _span(
    seen: Bool[Tensor, "g r"], lattice: Int[Tensor, " R"]
) -> tuple[Int[Tensor, " g"], Int[Tensor, " g"]]:
    """Return where the seen part of each line begins and ends; it ends before if empty."""
    flags = seen.to(torch.uint8)
    first, last = flags.argmax(1), seen.shape[1] - 1 - flags.flip(1).argmax(1)
    # A cell ends where the next begins; the last one, where the line does.
    begin, end = lattice[first], lattice[last + len(lattice) - seen.shape[1]]
    return begin, torch.where(seen.any(1), end, begin - 1)

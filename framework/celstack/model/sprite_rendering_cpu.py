"""Render sprites on CPUs: warp, mask noise and softclip in one pass over a window's pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, no_type_check

import numpy as np
import torch
from torch import Tensor

from celstack.geometry.soft_bounds import SOFTCLIP_SLOPE
from celstack.geometry.windows import Windows
from celstack.model.bilinear_cpu import (
    copy_into_padded,
    interpolate,
    pixels_backward,
    position_backward,
)
from celstack.model.numba_jit import check_shape, compiled, parallel_for, window_corners
from celstack.model.sample_positions_cpu import (
    COVERAGE,
    allocate,
    locate,
    map_pixels,
    map_pixels_backward,
)
from celstack.scene import EMPTY


class Spritewise(torch.autograd.Function):
    """Colors and masks of n sprites; the backward pass recomputes intermediate results."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        maps: Tensor,
        sprite: Tensor,
        noise: Tensor,
        windows: Windows,
        premultiplied: bool,
    ) -> tuple[Tensor, Tensor]:
        """Return colors, times alpha if ``premultiplied``, and alpha.

        Args:
            ctx: Keeps what the backward pass needs.
            images: The sprites, (n, D, h, w); those of a window follow one another.
            maps: As returned by ``locate_sprites``; successive sprites may share one.
            sprite: The number of each sprite, or EMPTY.
            noise: Noise for the mask of each number, (K, H, W).
            windows: Where sprites are rendered.
            premultiplied: Multiply colors by alpha; such colors have no gradient.
        """
        groups, size = len(windows), (windows.height, windows.width)
        count, depth = images.shape[:2]
        check_shape("sprites", sprite, count)
        check_shape("noise", noise, len(noise), *windows.canvas)
        check_shape("maps", maps, len(maps), *_map_shape(maps, size))
        if len(maps) % groups or count % len(maps):
            raise ValueError(f"{groups} windows have {len(maps)} maps and {count} sprites")
        if not ((sprite >= EMPTY) & (sprite < len(noise))).all():
            raise ValueError(f"sprites of more than {len(noise)} kinds")
        places = window_corners([windows], groups, windows.canvas, size)
        lines = Windows.whole(windows.canvas, 1).coordinates(images)
        grouped = [one.unflatten(0, (groups, -1)) for one in (images, maps, sprite)]
        given = [one.contiguous() for one in (*grouped, places, noise, *lines)]
        colour = images.new_empty(groups, count // groups, depth - 1, *size)
        alpha = images.new_empty(groups, count // groups, *size)
        _by_threads(_render, given, [colour, alpha], premultiplied)
        ctx.save_for_backward(*given)
        ctx.premultiplied = premultiplied
        return colour.flatten(0, 1), alpha.flatten(0, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of images and maps."""
        if ctx.premultiplied:
            raise NotImplementedError("premultiplied colors have no gradient")
        images, maps, *_ = given = ctx.saved_tensors
        made = [torch.empty_like(images), torch.zeros_like(maps)]
        grouped = [one.contiguous().unflatten(0, images.shape[:2]) for one in gradients]
        _by_threads(_render_backward, given, [*grouped, *made])
        return (*(one.flatten(0, 1) for one in made), None, None, None, None)


def _map_shape(maps: Tensor, size: tuple[int, int]) -> tuple[int, ...]:
    """Return the shape that each map must have: points of a window, 2 x 3 or 3 x 3."""
    if maps.ndim == 4:
        return (*size, 2)
    return (2 if maps.shape[1] == 2 else 3), 3


def _by_threads(
    loops: Any, given: Sequence[Tensor], made: Sequence[Tensor], *options: bool
) -> None:
    """Run loops over windows, each thread on a slice; all share noise and coordinates."""
    *own, noise, x, y = (one.numpy() for one in given)
    results = [one.numpy() for one in made]

    def work(some: slice) -> None:
        mine = [one[some] for one in own]
        loops(*mine, noise, x[0], y[0], *(one[some] for one in results), *options)

    parallel_for(work, len(own[0]))


@compiled
@no_type_check
def _render(images, maps, sprites, corners, noise, xs, ys, colours, alphas, premultiplied):
    """Render the sprites of windows."""
    groups, count, depth, height, width = images.shape
    tall, wide = alphas.shape[2:]
    per_window, stride = maps.shape[1], width + 3
    padded = np.zeros((depth, height + 3, stride), images.dtype)
    planes = padded.reshape(depth, -1)
    index, samples, spans = allocate(tall, wide, images.dtype)
    for b in range(groups):
        top, left = corners[b, 0]
        for n in range(count):
            if n * per_window % count == 0:  # sprites that share a map share its positions
                mapping = maps[b, n * per_window // count]
                map_pixels(mapping, xs[left : left + wide], ys[top : top + tall], samples)
                locate((height, width), index, samples, wide, spans)
            copy_into_padded(images[b, n], padded)
            alpha, kind = alphas[b, n], sprites[b, n]
            if kind == EMPTY:
                alpha[:] = 0
            else:
                interpolate(planes[depth - 1], stride, index, samples, spans, alpha)
                _add_noise_and_clip(alpha, samples[COVERAGE], noise[kind], top, left)
            for c in range(depth - 1):
                interpolate(planes[c], stride, index, samples, spans, colours[b, n, c])
                if premultiplied:
                    _multiply(colours[b, n, c], alpha)


@compiled
@no_type_check
def _add_noise_and_clip(alpha, coverage, noise, top, left):
    """Add noise to a mask where the sprite is, then apply softclip."""
    number = alpha.dtype.type
    zero, one, outside = number(0), number(1), number(SOFTCLIP_SLOPE)
    for row in range(len(alpha)):
        mask, area = alpha[row], coverage[row]
        speck = noise[top + row, left : left + len(mask)]
        for x in range(len(mask)):
            value = mask[x] + area[x] * speck[x]
            inside = min(max(value, zero), one)
            mask[x] = inside + outside * (value - inside)


@compiled
@no_type_check
def _multiply(colour, alpha):
    target, source = colour.reshape(-1), alpha.reshape(-1)
    for x in range(len(source)):
        target[x] *= source[x]


@compiled
@no_type_check
def _render_backward(
    images,
    maps,
    sprites,
    corners,
    noise,
    xs,
    ys,
    of_colours,
    of_alphas,
    of_images,
    of_maps,
):
    """Compute the gradients of images and maps."""
    groups, count, depth, height, width = images.shape
    tall, wide = of_alphas.shape[2:]
    size, stride = (height, width), width + 3
    padded = np.zeros((depth + 1, height + 3, stride), images.dtype)
    padded[depth, 1:-2, 1:-2] = 1  # interpolated, this is COVERAGE
    of_padded = np.zeros_like(padded)
    planes, of_planes = padded.reshape(depth + 1, -1), of_padded.reshape(depth + 1, -1)
    index, samples, spans = allocate(tall, wide, images.dtype)
    slopes = np.empty((depth + 1, tall, wide), images.dtype)
    of_position = np.empty((2, tall, wide), images.dtype)
    for b in range(groups):
        top, left = corners[b, 0]
        columns, rows = xs[left : left + wide], ys[top : top + tall]
        for n in range(count):
            which = n * maps.shape[1] // count
            map_pixels(maps[b, which], columns, rows, samples)
            locate(size, index, samples, wide, spans)
            copy_into_padded(images[b, n], padded[:depth])
            slopes[: depth - 1] = of_colours[b, n]
            slopes[depth - 1 :] = 0
            if sprites[b, n] != EMPTY:
                own, area, mine = slopes[depth - 1 :], samples[COVERAGE], noise[sprites[b, n]]
                interpolate(planes[depth - 1], stride, index, samples, spans, own[0])
                _clip_backward(own, of_alphas[b, n], area, mine, top, left)
            of_position[:] = 0
            for c in range(depth + 1):
                position_backward(
                    planes[c], stride, index, samples, spans, slopes[c], of_position
                )
            of_padded[:] = 0
            pixels_backward(of_planes, stride, index, samples, spans, slopes[:depth])
            of_images[b, n] = of_padded[:depth, 1:-2, 1:-2]
            map_pixels_backward(
                of_maps[b, which], columns, rows, samples, spans, size, of_position
            )


@compiled
@no_type_check
def _clip_backward(slopes, of_alpha, coverage, noise, top, left):
    """Replace an interpolated mask by its gradient, and compute that of COVERAGE."""
    outside = slopes.dtype.type(SOFTCLIP_SLOPE)
    for row in range(len(of_alpha)):
        mask, of_coverage = slopes[0, row], slopes[1, row]
        slope, area = of_alpha[row], coverage[row]
        speck = noise[top + row, left : left + len(slope)]
        for x in range(len(slope)):
            value = mask[x] + area[x] * speck[x]
            mask[x] = slope[x] if 0 < value < 1 else outside * slope[x]
            of_coverage[x] = mask[x] * speck[x]

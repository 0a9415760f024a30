"""Eq. 2 for CPUs: composite layers in windows, row by row, with compiled loops.

In the paper's letters, d_jl is how much layer j hides layer l. The backdrop is treated as one
more layer, the last: opaque, and hidden by all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
import torch
from torch import Tensor

from celstack.geometry.windows import Windows
from celstack.model.numba_jit import check_shape, compiled, parallel_for, window_corners


class Rowwise(torch.autograd.Function):
    """Eq. 2 row by row; the backward pass recomputes intermediate results."""

    @staticmethod
    def forward(
        ctx: Any,
        color: Tensor,
        alpha: Tensor,
        backdrop: Tensor,
        occlusion: Tensor,
        windows: list[Windows],
    ) -> Tensor:
        """Return the images."""
        batch, layers, channels, *size = color.shape
        canvas = (backdrop.shape[2], backdrop.shape[3])
        check_shape("masks", alpha, batch, layers, *size)
        check_shape("backdrops", backdrop, batch, channels, *canvas)
        check_shape("occlusion", occlusion, batch, layers, layers)
        places = window_corners(windows, batch, canvas, *[(size[0], size[1])] * layers)
        hides = torch.cat([occlusion, torch.ones_like(occlusion[:, :, :1])], dim=2)
        given = [one.contiguous() for one in (color, alpha, backdrop, hides, places)]
        image = torch.empty_like(given[2])
        _by_threads(_stack, [*given, image])
        ctx.save_for_backward(*given)
        return image

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of colors, masks, backdrops and occlusion."""
        *given, hides, places = ctx.saved_tensors
        slopes = [*map(torch.empty_like, given), torch.zeros_like(hides)]
        _by_threads(_unstack, [*given, hides, places, gradient.contiguous(), *slopes])
        of_hides = slopes.pop()
        return (*slopes, of_hides[:, :, :-1], None)


def _by_threads(loops: Callable[..., Any], tensors: list[Tensor]) -> None:
    """Run compiled loops over images, each thread on a slice of them."""
    arrays = [one.numpy() for one in tensors]
    parallel_for(lambda some: loops(*(one[some] for one in arrays)), len(arrays[0]))


@compiled
@no_type_check
def _masks(alpha, corners, row, masks, there):
    """Write the masks of a row; list the layers whose windows contain it, return how many."""
    layers, tall, wide = alpha.shape
    count = 0
    for layer in range(layers):
        top, left = corners[layer]
        if top <= row < top + tall:
            there[count] = layer
            count += 1
            mask, source = masks[layer], alpha[layer, row - top]
            mask[:] = 0
            mask[left : left + wide] = source
    return count


@compiled
@no_type_check
def _products(masks, hides, there, first, last, products):
    """Compute the running products of 1 - d_jl alpha_j over the layers j of a row."""
    products[0, first:last] = 1
    for n in range(len(there)):
        mask, hide = masks[there[n], first:last], hides[there[n]]
        before, after = products[n, first:last], products[n + 1, first:last]
        for x in range(len(mask)):
            after[x] = before[x] - before[x] * hide * mask[x]


@compiled
@no_type_check
def _stack(colors, alphas, backdrops, hides, corners, images):
    """Composite the layers of images."""
    batch, layers, channels, _, wide = colors.shape
    height, width = images.shape[2:]
    masks = np.empty((layers, width), images.dtype)
    products = np.empty((layers + 1, width), images.dtype)
    there = np.empty(layers, np.int64)
    for b in range(batch):
        for row in range(height):
            count = _masks(alphas[b], corners[b], row, masks, there)
            _products(masks, hides[b, :, layers], there[:count], 0, width, products)
            left_over = products[count]
            for c in range(channels):
                behind, image = backdrops[b, c, row], images[b, c, row]
                for x in range(width):
                    image[x] = left_over[x] * behind[x]
            for layer in there[:count]:
                top, left = corners[b, layer]
                _products(masks, hides[b, :, layer], there[:count], left, left + wide, products)
                left_over = products[count, left : left + wide]
                mask = alphas[b, layer, row - top]
                for c in range(channels):
                    color = colors[b, layer, c, row - top]
                    image = images[b, c, row, left : left + wide]
                    for x in range(wide):
                        image[x] += left_over[x] * mask[x] * color[x]


@compiled
@no_type_check
def _unstack(
    colors,
    alphas,
    backdrops,
    hides,
    corners,
    gradients,
    of_colors,
    of_alphas,
    of_backdrops,
    of_hides,
):
    """Backpropagate the gradients of images to colors, masks, backdrops and occlusion."""
    batch, layers, channels, _, wide = colors.shape
    height, width = backdrops.shape[2:]
    masks = np.empty((layers, width), colors.dtype)
    of_masks = np.empty((layers, width), colors.dtype)
    products = np.empty((layers + 1, width), colors.dtype)
    shines = np.empty(width, colors.dtype)
    there = np.empty(layers, np.int64)
    for b in range(batch):
        for row in range(height):
            count = _masks(alphas[b], corners[b], row, masks, there)
            listed = there[:count]
            of_masks[:] = 0
            _products(masks, hides[b, :, layers], listed, 0, width, products)
            left_over = products[count]
            shines[:] = 0
            for c in range(channels):
                gradient, behind = gradients[b, c, row], backdrops[b, c, row]
                slope = of_backdrops[b, c, row]
                for x in range(width):
                    shines[x] += gradient[x] * behind[x]
                    slope[x] = gradient[x] * left_over[x]
            _take_away(
                shines,
                masks,
                hides[b, :, layers],
                listed,
                0,
                products,
                of_masks,
                of_hides[b, :, layers],
            )
            for layer in listed:
                top, left = corners[b, layer]
                right = left + wide
                _products(masks, hides[b, :, layer], listed, left, right, products)
                left_over = products[count, left:right]
                mask, of_mask = masks[layer, left:right], of_masks[layer, left:right]
                shine = shines[:wide]
                shine[:] = 0
                for c in range(channels):
                    gradient = gradients[b, c, row, left:right]
                    color = colors[b, layer, c, row - top]
                    slope = of_colors[b, layer, c, row - top]
                    for x in range(wide):
                        shine[x] += gradient[x] * color[x]
                        slope[x] = gradient[x] * left_over[x] * mask[x]
                for x in range(wide):
                    of_mask[x] += shine[x] * left_over[x]
                    shine[x] *= mask[x]
                _take_away(
                    shine,
                    masks,
                    hides[b, :, layer],
                    listed,
                    left,
                    products,
                    of_masks,
                    of_hides[b, :, layer],
                )
            for layer in listed:
                top, left = corners[b, layer]
                of_alphas[b, layer, row - top] = of_masks[layer, left : left + wide]


@compiled
@no_type_check
def _take_away(shine, masks, hides, there, left, products, of_masks, of_hides):
    """Add the gradients of masks and occlusion that come from hiding one layer.

    ``shine`` is the gradient with respect to that layer's visibility. For each hiding layer
    it is multiplied by the factors of all the others: those before it, and those after it.
    """
    right = left + len(shine)
    for n in range(len(there) - 1, -1, -1):
        layer = there[n]
        hide, before = hides[layer], products[n, left:right]
        mask, of_mask = masks[layer, left:right], of_masks[layer, left:right]
        total = shine.dtype.type(0)
        for x in range(len(shine)):
            taken = shine[x] * before[x]
            of_mask[x] -= hide * taken
            total += taken * mask[x]
            shine[x] -= shine[x] * hide * mask[x]
        of_hides[layer] -= total

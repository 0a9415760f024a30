"""Color compiled for CPUs: gain, offset and softclip in one pass, with its gradient."""

from typing import Any, no_type_check

import torch
from torch import Tensor

from celstack.geometry import SOFTCLIP_SLOPE
from celstack.model.numba_jit import array, check_shape, compiled, parallel_for


class GainOffset(torch.autograd.Function):
    """Scale, shift and softly clip the colors of images; alpha is copied."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, params: Tensor) -> Tensor:
        """Return images of the same size."""
        check_shape("parameters", params, len(images), 2 * (images.shape[1] - 1))
        ctx.save_for_backward(images, params)
        made = torch.empty_like(images, memory_format=torch.contiguous_format)
        given = [array(images.flatten(2)), array(params), made.flatten(2).numpy()]
        parallel_for(lambda some: _forward(*(one[some] for one in given)), len(images))
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of images and parameters."""
        images, params = ctx.saved_tensors
        of_images = torch.empty_like(images, memory_format=torch.contiguous_format)
        of_params = torch.empty_like(params, memory_format=torch.contiguous_format)
        given = [array(one) for one in (images.flatten(2), params, gradient.flatten(2))]
        given += [of_images.flatten(2).numpy(), of_params.numpy()]
        parallel_for(lambda some: _backward(*(one[some] for one in given)), len(images))
        return of_images, of_params


@compiled
@no_type_check
def _forward(images, params, made):
    number = images.dtype.type
    zero, one, outside = number(0), number(1), number(SOFTCLIP_SLOPE)
    count, depth, pixels = images.shape
    for n in range(count):
        for c in range(depth - 1):
            gain, offset = one + params[n, c], params[n, depth - 1 + c]
            source, target = images[n, c], made[n, c]
            for x in range(pixels):
                value = source[x] * gain + offset
                inside = min(max(value, zero), one)
                target[x] = inside + outside * (value - inside)
        source, target = images[n, depth - 1], made[n, depth - 1]
        for x in range(pixels):
            target[x] = source[x]


@compiled
@no_type_check
def _backward(images, params, gradients, of_images, of_params):
    number = images.dtype.type
    one, outside = number(1), number(SOFTCLIP_SLOPE)
    count, depth, pixels = images.shape
    for n in range(count):
        for c in range(depth - 1):
            gain, offset = one + params[n, c], params[n, depth - 1 + c]
            source, slope, target = images[n, c], gradients[n, c], of_images[n, c]
            total, weighted = number(0), number(0)
            for x in range(pixels):
                inside = 0 < source[x] * gain + offset < 1
                change = slope[x] if inside else outside * slope[x]
                target[x] = change * gain
                total += change
                weighted += change * source[x]
            of_params[n, c], of_params[n, depth - 1 + c] = weighted, total
        slope, target = gradients[n, depth - 1], of_images[n, depth - 1]
        for x in range(pixels):
            target[x] = slope[x]

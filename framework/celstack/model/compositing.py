"""Composite layers in windows (Eq. 2), with a custom autograd function.

With the others fixed, the image is affine in every layer, so its gradient consists of
products over the other layers. Plain autograd would need several times the time and memory.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.geometry.windows import Windows
from celstack.model.numba_jit import supports


def composite(
    color: Float[Tensor, "B L C h w"],
    alpha: Float[Tensor, "B L h w"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
    windows: list[Windows],
) -> Float[Tensor, "B C H W"]:
    """Composite layers over a backdrop (Eq. 2).

    Args:
        color: Colors of the layers in their windows.
        alpha: Masks of the layers in their windows.
        backdrop: What is behind all layers.
        occlusion: The matrix d, d_jl = 1 where layer j hides layer l.
        windows: For each layer, where it is on the B canvases.
    """
    way: type[torch.autograd.Function] = Layerwise
    if supports(alpha):
        from celstack.model.compositing_cpu import Rowwise

        way = Rowwise
    made: Tensor = way.apply(color, alpha, backdrop, occlusion, windows)
    return made


class Layerwise(torch.autograd.Function):
    """Eq. 2 for accelerators and 16-bit floats: one layer of all images at a time.

    In the paper's letters, d_jl is how much layer j hides layer l.
    """

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
        canvases = alpha.new_zeros(*alpha.shape[:2], *backdrop.shape[2:])
        uncovered = torch.ones_like(backdrop[:, :1])
        for layer, window in enumerate(windows):
            window.paste(canvases[:, layer], alpha[:, layer])
            window.multiply(uncovered, 1 - alpha[:, layer, None])
        image = uncovered * backdrop
        left = torch.empty_like(alpha)
        around = [window.cut(canvases) for window in windows]
        for layer, window in enumerate(windows):
            leaves = _leaves(around[layer], occlusion[:, :, layer])
            torch.prod(leaves, dim=1, out=left[:, layer])
            visible = left[:, layer] * alpha[:, layer]
            window.add(image, visible[:, None] * color[:, layer])
        ctx.save_for_backward(color, alpha, backdrop, occlusion, uncovered, left, *around)
        ctx.windows = windows
        return image

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of colors, masks, backdrops and occlusion."""
        color, alpha, backdrop, occlusion, uncovered, left, *around = ctx.saved_tensors
        of_color, of_alpha = torch.empty_like(color), torch.empty_like(alpha)
        of_occlusion = torch.empty_like(occlusion)
        hidden = alpha.new_zeros(*alpha.shape[:2], *backdrop.shape[2:])
        behind = (gradient * backdrop).sum(1)
        for layer, (window, others) in enumerate(zip(ctx.windows, around, strict=True)):
            mine = window.cut(gradient)
            visible = left[:, layer] * alpha[:, layer]
            torch.mul(visible[:, None], mine, out=of_color[:, layer])
            shines = (mine * color[:, layer]).sum(1)
            # The gradient of what other layers hide of this one ...
            lost = _products_of_others(
                _leaves(others, occlusion[:, :, layer]), shines * alpha[:, layer]
            )
            if ctx.needs_input_grad[3]:
                pairs = others.flatten(2) @ lost.flatten(2).mT
                of_occlusion[:, :, layer] = -pairs.diagonal(dim1=1, dim2=2)
            window.add(hidden, lost.mul_(occlusion[:, :, layer, None, None]))
            # ... and of what this one hides of the backdrop.
            uncovers = window.cut(behind).clone()
            for other in range(others.shape[1]):
                if other != layer:
                    uncovers.addcmul_(uncovers, others[:, other], value=-1)
            torch.addcmul(-uncovers, left[:, layer], shines, out=of_alpha[:, layer])
        for layer, window in enumerate(ctx.windows):
            of_alpha[:, layer] -= window.cut(hidden[:, layer])
        return of_color, of_alpha, uncovered * gradient, of_occlusion, None


def _leaves(
    alpha: Float[Tensor, "B L h w"], hides: Float[Tensor, "B L"]
) -> Float[Tensor, "B L h w"]:
    """Return 1 - d_jl alpha_j for all layers j and one layer l."""
    return torch.addcmul(alpha.new_ones(1), alpha, hides[:, :, None, None], value=-1)


def _products_of_others(
    factors: Float[Tensor, "B L h w"], start: Float[Tensor, "B h w"]
) -> Float[Tensor, "B L h w"]:
    """Return, for each layer, start times the product of all other layers' factors."""
    products = torch.empty_like(factors)
    products[:, 0] = start
    last = factors.shape[1] - 1
    for layer in range(last):
        torch.mul(products[:, layer], factors[:, layer], out=products[:, layer + 1])
    after = factors[:, last]
    for layer in reversed(range(last)):
        products[:, layer] *= after
        after *= factors[:, layer]
    return products

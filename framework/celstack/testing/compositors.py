"""check_compositor: the laws of Compositor."""

from __future__ import annotations

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.compositor import Compositor
from celstack.testing.assertions import (
    check_gradients_reach,
    check_unprepared,
    close,
    require_law,
    seeded,
)

IMAGES = 3
CANVAS = (4, 5)


@seeded()
def check_compositor(compositor: Compositor, *, channels: int = 3) -> None:
    """Check the laws of Compositor.

    Args:
        compositor: The compositor, with any number of layers, as its constructor left it.
        channels: The number of color channels to check it with.
    """
    if isinstance(compositor, nn.Module):
        check_unprepared(compositor)
    compositor = copy.deepcopy(compositor)
    compositor.prepare((channels, *CANVAS))
    count = compositor.layers
    require_law(
        compositor, isinstance(count, int) and count >= 1, "layers is a number of layers"
    )
    number = compositor.num_logits
    require_law(
        compositor, isinstance(number, int) and number >= 0, "num_logits is a whole number"
    )
    logits = torch.randn(IMAGES, number)
    for training in (True, False):
        _check_occlusion(compositor, compositor.occlusion(logits, training), training)
    _check_gradient_of_order(compositor, logits)
    occlusion = compositor.occlusion(logits, False)
    layers = torch.rand(IMAGES, count, channels + 1, *CANVAS)
    backdrop = torch.rand(IMAGES, channels, *CANVAS)
    _check_shapes(compositor, layers, backdrop, occlusion)
    _check_extremes(compositor, layers, backdrop, occlusion)
    _check_order(compositor, layers, backdrop, occlusion)
    for training in (True, False):
        _check_sum(compositor, layers, backdrop, compositor.occlusion(logits, training))
    _check_gradients(compositor, layers, backdrop, occlusion)
    if isinstance(compositor, nn.Module) and (own := [*compositor.parameters()]):
        image, _ = compositor.compose(layers, backdrop, compositor.occlusion(logits, True))
        check_gradients_reach(compositor, image, own)


def _check_occlusion(
    compositor: Compositor, occlusion: Float[Tensor, "B L L"], training: bool
) -> None:
    count = compositor.layers
    shape = (IMAGES, count, count)
    law = f"occlusion has the shape (images, layers, layers) = {shape}"
    require_law(
        compositor, occlusion.shape == shape, f"{law}, but it is {tuple(occlusion.shape)}"
    )
    diagonal = occlusion.diagonal(dim1=1, dim2=2)
    require_law(compositor, not diagonal.any(), "no layer hides itself: the diagonal is 0")
    both = occlusion + occlusion.transpose(1, 2)
    expected = (1 - torch.eye(count)).expand_as(both)
    require_law(
        compositor, close(both, expected), "of two layers one hides the other: d_jl + d_lj = 1"
    )
    inside = bool((occlusion >= 0).all() and (occlusion <= 1).all())
    require_law(compositor, inside, "occlusion lies in [0, 1]")
    if not training:
        binary = bool(((occlusion == 0) | (occlusion == 1)).all())
        require_law(compositor, binary, "occlusion is binary when not training")


def _check_gradient_of_order(compositor: Compositor, logits: Float[Tensor, "B N"]) -> None:
    if not logits.numel():
        return
    logits = logits.clone().requires_grad_()
    occlusion = compositor.occlusion(logits, True)
    law = "gradients reach the logits in training"
    require_law(compositor, occlusion.requires_grad, law)
    (gradient,) = torch.autograd.grad((occlusion * torch.randn_like(occlusion)).sum(), logits)
    require_law(compositor, bool(gradient.any()), law)


def _check_shapes(
    compositor: Compositor,
    layers: Float[Tensor, "B L D H W"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
) -> None:
    given = layers.clone(), backdrop.clone(), occlusion.clone()
    image, visible = compositor.compose(layers, backdrop, occlusion)
    require_law(compositor, image.shape == backdrop.shape, "the image has the backdrop's shape")
    seen = (*layers.shape[:2], *layers.shape[3:])
    require_law(compositor, visible.shape == seen, "visible has a mask for each layer")
    kept = all(map(torch.equal, given, (layers, backdrop, occlusion)))
    require_law(compositor, kept, "inputs are not modified, but they were")
    alone, _ = compositor.compose(layers[:1], backdrop[:1], occlusion[:1])
    require_law(compositor, close(alone, image[:1]), "images do not depend on one another")


def _check_extremes(
    compositor: Compositor,
    layers: Float[Tensor, "B L D H W"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
) -> None:
    stack = layers.clone()
    stack[:, :, -1] = 0.0
    image, visible = compositor.compose(stack, backdrop, occlusion)
    same = close(image, backdrop) and not visible.any()
    require_law(compositor, same, "with all layers transparent, the image is the backdrop")
    for layer in range(compositor.layers):
        opaque = stack.clone()
        opaque[:, layer, -1] = 1.0
        image, visible = compositor.compose(opaque, backdrop, occlusion)
        same = close(image, opaque[:, layer, :-1]) and close(
            visible[:, layer], opaque[:, layer, -1]
        )
        require_law(compositor, same, "with one opaque layer alone, the image is that layer")


def _check_order(
    compositor: Compositor,
    layers: Float[Tensor, "B L D H W"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
) -> None:
    for front in range(compositor.layers):
        for back in range(compositor.layers):
            # Only images in which the order is this one.
            hides = occlusion[:, front, back] == 1
            pair = layers[hides]
            pair[:, :, -1] = 0.0
            pair[:, [front, back], -1] = 1.0
            image, _ = compositor.compose(pair, backdrop[hides], occlusion[hides])
            law = "where d_jl = 1 layer j hides layer l, but l is visible through an opaque j"
            require_law(compositor, close(image, pair[:, front, :-1]), law)


def _check_sum(
    compositor: Compositor,
    layers: Float[Tensor, "B L D H W"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
) -> None:
    image, visible = compositor.compose(layers, backdrop, occlusion)
    alpha = layers[:, :, -1]
    uncovered = (1 - alpha).prod(1)[:, None]
    summed = (visible[:, :, None] * layers[:, :, :-1]).sum(1) + uncovered * backdrop
    law = "the image is the sum of the visible layers, and of the backdrop where no layer is"
    require_law(compositor, close(image, summed), law)
    within = bool((visible >= 0).all() and (visible <= alpha + 1e-6).all())
    require_law(compositor, within, "no more of a layer is visible than its alpha")


def _check_gradients(
    compositor: Compositor,
    layers: Float[Tensor, "B L D H W"],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
) -> None:
    layers, backdrop = layers.clone().requires_grad_(), backdrop.clone().requires_grad_()
    image, _ = compositor.compose(layers, backdrop, occlusion)
    require_law(compositor, image.requires_grad, "gradients reach layers and backdrop")
    weighted = (image * torch.randn_like(image)).sum()
    found = torch.autograd.grad(weighted, (layers, backdrop), allow_unused=True)
    reached = all(gradient is not None and bool(gradient.any()) for gradient in found)
    require_law(compositor, reached, "gradients reach layers and backdrop")

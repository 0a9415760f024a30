"""Order: which of two layers that overlap is in front."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack_kit.selectors.matching.scene_state import Draft, stack

OVERLAP = 1.0
"""Layers that share less than a pixel's area do not overlap."""
BETTER = 1e-4
"""Another order has to lower the squared error by so much."""


def find_order(draft: Draft, some: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """Move layers of some images where they fit better; tell in which images any moved.

    Each layer that overlaps others is tried at every depth, the rest staying as they are.
    """
    moved = torch.zeros_like(some, dtype=torch.bool)
    layers = draft.sprite.shape[1]
    doubtful = overlaps(draft.layers[some]).any((1, 2)).nonzero()[:, 0]
    if not len(doubtful):
        return moved
    here = some[doubtful]
    images, backdrop, shown = draft.images[here], draft.backdrop[here], draft.layers[here]
    order = torch.arange(layers, device=some.device).expand(len(here), -1)
    lowest = _error(images, shown, backdrop)
    for layer in range(layers):
        for depth in range(layers):
            tried = moved_to(order, layer, depth)
            error = _error(images, _taken(shown, tried), backdrop)
            better = error < lowest - BETTER
            order = torch.where(better[:, None], tried, order)
            lowest = torch.where(better, error, lowest)
    moved[doubtful] = (order != torch.arange(layers, device=some.device)).any(1)
    draft.reorder(here, order)
    return moved


def overlaps(layers: Float[Tensor, "n L D H W"]) -> Bool[Tensor, "n L L"]:
    """Tell which layers share some of the canvas."""
    alpha = layers[:, :, -1].flatten(2)
    shared = alpha @ alpha.mT
    shared.diagonal(dim1=1, dim2=2).zero_()
    return shared > OVERLAP


def moved_to(order: Int[Tensor, "n L"], layer: int, depth: int) -> Int[Tensor, "n L"]:
    """Take a layer out of its order, and put it back at another depth."""
    others = order[order != layer].view(len(order), -1)
    own = order.new_full((len(order), 1), layer)
    return torch.cat([others[:, :depth], own, others[:, depth:]], dim=1)


def _taken(
    layers: Float[Tensor, "n L D H W"], order: Int[Tensor, "n L"]
) -> Float[Tensor, "n L D H W"]:
    return layers[torch.arange(len(order), device=order.device)[:, None], order]


def _error(
    images: Float[Tensor, "n C H W"],
    layers: Float[Tensor, "n L D H W"],
    backdrop: Float[Tensor, "n C H W"],
) -> Float[Tensor, " n"]:
    return (stack(layers, backdrop)[0] - images).square().flatten(1).sum(1)

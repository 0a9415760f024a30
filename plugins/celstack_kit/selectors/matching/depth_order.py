"""Improve the depth order of overlapping layers by local search."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack_kit.selectors.matching.scene_state import SceneState, composite

MIN_OVERLAP_PIXELS = 1.0
"""Minimum area that two layers share to count as overlapping."""
MIN_IMPROVEMENT = 1e-4
"""Minimum reduction of the squared error for another order to be accepted."""


def improve_depth_order(state: SceneState, indices: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """Move layers to the depths with the lowest squared error, one layer at a time.

    Each layer is tried at every depth, with the others fixed, in images with overlaps.

    Returns:
        In which of these images the order changed.
    """
    changed = torch.zeros_like(indices, dtype=torch.bool)
    num_layers = state.sprite.shape[1]
    ambiguous = overlaps(state.layers[indices]).any((1, 2)).nonzero()[:, 0]
    if not len(ambiguous):
        return changed
    here = indices[ambiguous]
    images, backdrop, layers = state.images[here], state.backdrop[here], state.layers[here]
    order = torch.arange(num_layers, device=indices.device).expand(len(here), -1)
    lowest = _squared_error(images, layers, backdrop)
    for layer in range(num_layers):
        for depth in range(num_layers):
            tried = move_layer(order, layer, depth)
            error = _squared_error(images, _permute(layers, tried), backdrop)
            better = error < lowest - MIN_IMPROVEMENT
            order = torch.where(better[:, None], tried, order)
            lowest = torch.where(better, error, lowest)
    changed[ambiguous] = (order != torch.arange(num_layers, device=indices.device)).any(1)
    state.reorder_layers(here, order)
    return changed


def overlaps(layers: Float[Tensor, "n L D H W"]) -> Bool[Tensor, "n L L"]:
    """Return which pairs of layers share some area of the canvas."""
    alpha = layers[:, :, -1].flatten(2)
    shared = alpha @ alpha.mT
    shared.diagonal(dim1=1, dim2=2).zero_()
    return shared > MIN_OVERLAP_PIXELS


def move_layer(order: Int[Tensor, "n L"], layer: int, depth: int) -> Int[Tensor, "n L"]:
    """Return the permutations with one layer moved to another depth."""
    others = order[order != layer].view(len(order), -1)
    own = order.new_full((len(order), 1), layer)
    return torch.cat([others[:, :depth], own, others[:, depth:]], dim=1)


def _permute(
    layers: Float[Tensor, "n L D H W"], order: Int[Tensor, "n L"]
) -> Float[Tensor, "n L D H W"]:
    return layers[torch.arange(len(order), device=order.device)[:, None], order]


def _squared_error(
    images: Float[Tensor, "n C H W"],
    layers: Float[Tensor, "n L D H W"],
    backdrop: Float[Tensor, "n C H W"],
) -> Float[Tensor, " n"]:
    return (composite(layers, backdrop)[0] - images).square().flatten(1).sum(1)

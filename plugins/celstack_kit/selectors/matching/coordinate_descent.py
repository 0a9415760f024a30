"""Coordinate descent over layers: each is optimized while the others are fixed."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from celstack import EMPTY
from celstack_kit.selectors.matching.background import (
    background_follows_images,
    fit_background,
)
from celstack_kit.selectors.matching.scene_state import MIN_IMPROVEMENT, SceneState
from celstack_kit.selectors.matching.search import SpriteChoice, SpriteSearch
from celstack_kit.selectors.matching.templates import LayerContext

MAX_COVERED_TRANSMITTANCE = 0.5
"""Pixels at which the layers let less of what is behind through count as covered."""


def update_layers(
    state: SceneState, indices: Int[Tensor, " n"], search: SpriteSearch, price: float | None
) -> Bool[Tensor, " n"]:
    """Optimize every layer that is not empty, front to back, at its depth.

    Returns:
        In which of these images any layer changed.
    """
    changed = torch.zeros_like(indices, dtype=torch.bool)
    for layer in reversed(range(state.sprite.shape[1])):
        filled = (state.sprite[indices, layer] != EMPTY).nonzero()[:, 0]
        if not len(filled):
            continue
        here = indices[filled]
        context = state.layer_context(layer, here)
        choice = search(context, (state.sprite[here, layer], state.pose[here, layer]))
        changed[filled] |= state.accept_if_better(layer, here, context, choice, price)
    return changed


def drop_shadows(
    state: SceneState, indices: Int[Tensor, " n"], price: float | None
) -> Bool[Tensor, " n"]:
    """Empty the layers that the light of the background explains as well.

    Each layer is removed on trial, those in front last, and the background is fitted to what
    becomes visible. The layer stays empty if the objective decreases.

    Returns:
        In which of these images any layer was emptied.
    """
    changed = torch.zeros_like(indices, dtype=torch.bool)
    if price is None or not background_follows_images(state.decomposer):
        return changed
    for layer in range(state.sprite.shape[1]):
        filled = (state.sprite[indices, layer] != EMPTY).nonzero()[:, 0]
        here = indices[filled]
        before = state.save(here)
        objective = state.objective(price, here)
        state.empty_layer(layer, here)
        fit_background(state, here)
        worse = state.objective(price, here) > objective - MIN_IMPROVEMENT
        state.restore(before, here, worse)
        changed[filled] |= ~worse
    return changed


def fill_empty_layers(
    state: SceneState,
    indices: Int[Tensor, " n"],
    search: SpriteSearch,
    price: float | None,
    rank: int = 0,
) -> Bool[Tensor, " n"]:
    """Put sprites on empty layers, greedily, while the objective decreases.

    Sprites that reduce the error most are rarely occluded, so further ones are searched for
    behind all others. If more error is left on covered pixels than a sprite behind could
    remove, one in front is searched for, too.

    Args:
        state: The scenes.
        indices: The images.
        search: Finds the sprite for a layer.
        price: Cost of a layer that is not empty; None if layers must not be empty.
        rank: Rank of the first sprite to put, by error reduction; later ones are the best.

    Returns:
        In which of these images any layer was filled.
    """
    changed = torch.zeros_like(indices, dtype=torch.bool)
    active = torch.arange(len(indices), device=indices.device)
    state.sort_layers(indices, state.sprite[indices] != EMPTY)
    for _ in range(state.sprite.shape[1]):
        # Empty layers are sorted first: layer 0 is empty and behind all others, or none is.
        active = active[state.sprite[indices[active], 0] == EMPTY]
        if not len(active):
            break
        here = indices[active]
        context, choice, in_front = _search_behind_or_in_front(state, here, search, rank)
        rank = 0
        accepted = state.accept_if_better(0, here, context, choice, price)
        depth = (state.sprite[here] != EMPTY).long()
        depth[:, 0] += accepted & in_front
        state.sort_layers(here, depth)
        changed[active] |= accepted
        active = active[accepted]
    return changed


def _search_behind_or_in_front(
    state: SceneState, indices: Int[Tensor, " n"], search: SpriteSearch, rank: int
) -> tuple[LayerContext, SpriteChoice, Bool[Tensor, " n"]]:
    """Search for a new layer behind all others or in front of them, whichever is better.

    Returns:
        What the layer is composited with, the choice, and in which images it is in front.
    """
    behind = state.layer_context(0, indices)
    choice = search(behind, rank=rank)
    covered = behind.residual.square() * (behind.transmittance < MAX_COVERED_TRANSMITTANCE)
    doubtful = (covered.flatten(1).sum(1) > choice.error_reduction).nonzero()[:, 0]
    in_front = torch.zeros_like(indices, dtype=torch.bool)
    if len(doubtful):
        front = state.layer_context(state.sprite.shape[1], indices[doubtful])
        other = search(front)
        better = other.error_reduction > choice.error_reduction[doubtful]
        in_front[doubtful] = better
        for ours, theirs in zip((*behind, *choice), (*front, *other), strict=True):
            ours[doubtful[better]] = theirs[better]
    return behind, choice, in_front

"""Backdrop: which background is behind the layers, and in what colors."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack_kit.selectors.matching.scene_state import Draft, stack

DARK = 0.02
"""Where a background is darker, its gain cannot be read off."""
MOST = 50.0
"""Gains above this are not looked for."""


def fit_backdrop(draft: Draft, some: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """Give images the background that fits where no layer is; tell in which it is another.

    Gains are the best in squares over what shows of the backdrop; before any layer is
    known, they are medians, which objects sway less.
    """
    decomposer = draft.decomposer
    unchanged = torch.zeros_like(some, dtype=torch.bool)
    if decomposer.backgrounds is None:
        return unchanged
    count = decomposer.backgrounds.count
    images = draft.images[some]
    shown, left = stack(draft.layers[some], torch.zeros_like(images))
    params = images.new_zeros(len(some) * count, decomposer.background_chain.num_params)
    whole = (images - shown)[:, None].expand(-1, count, -1, -1, -1).flatten(0, 1)
    shows = left[:, None].expand(-1, count, -1, -1, -1).flatten(0, 1)
    plain = decomposer.show_backgrounds(params.unflatten(0, (len(some), count))).flatten(0, 1)
    first = not bool((draft.layers[some, :, -1] != 0).any())
    gains = _medians(whole, plain) if first else _squares(whole, shows * plain)
    # Beyond white there is nothing to be gained.
    gains = gains.minimum(1 / plain.flatten(2).amax(2).clamp_min(1 / MOST))
    tint = decomposer.background_chain.tint(gains)
    if tint is not None:
        params = tint
    params = params.unflatten(0, (len(some), count))
    backdrops = decomposer.show_backgrounds(params)
    misses = (images - shown)[:, None] - left[:, None] * backdrops
    best = misses.square().flatten(2).sum(2).argmin(1)
    image = torch.arange(len(some), device=some.device)
    changed = draft.background[some] != best
    draft.background[some] = best
    draft.background_params[some] = params[image, best]
    draft.backdrop[some] = backdrops[image, best]
    return changed


def _medians(
    images: Float[Tensor, "n C H W"], plain: Float[Tensor, "n C H W"]
) -> Float[Tensor, "n C"]:
    ratios = (images / plain.clamp_min(DARK)).masked_fill(plain < DARK, torch.nan)
    return ratios.flatten(2).nanmedian(2).values.nan_to_num(1.0).clamp_min(0.0)


def _squares(
    images: Float[Tensor, "n C H W"], shows: Float[Tensor, "n C H W"]
) -> Float[Tensor, "n C"]:
    energy = shows.square().flatten(2).sum(2)
    gains = (images * shows).flatten(2).sum(2) / energy.clamp_min(1e-6)
    return torch.where(energy > 1e-6, gains, 1.0).clamp_min(0.0)

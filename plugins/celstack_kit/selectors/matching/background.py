"""Select the background of each image, and estimate its color gains."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack import Decomposer
from celstack_kit.selectors.matching.scene_state import SceneState, composite

MIN_LEVEL = 0.02
"""Background pixels darker than this are ignored when gains are estimated."""
MAX_GAIN = 50.0
GROUND_ITERATIONS = 4
GROUND_DEVIATIONS = 2.5
"""Pixels that differ from the background by more, in standard deviations, are objects."""
MIN_NOISE = 1e-3


def fit_background(state: SceneState, indices: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """Set the background, and its light or color gains, with the lowest squared error.

    Gains are the least-squares solution where the background is visible; while all layers are
    empty, they are medians of ratios, which objects in the image affect less.

    Returns:
        In which of these images another background was selected.
    """
    decomposer = state.decomposer
    unchanged = torch.zeros_like(indices, dtype=torch.bool)
    if decomposer.backgrounds is None:
        return unchanged
    count = decomposer.backgrounds.count
    images = state.images[indices]
    layers, visible = composite(state.layers[indices], torch.zeros_like(images))
    params = images.new_zeros(len(indices) * count, decomposer.background_chain.num_params)
    target = (images - layers)[:, None].expand(-1, count, -1, -1, -1).flatten(0, 1)
    share = visible[:, None].expand(-1, count, -1, -1, -1).flatten(0, 1)
    untinted = decomposer.render_backgrounds(params.unflatten(0, (len(indices), count)))
    untinted = untinted.flatten(0, 1)
    all_empty = not bool((state.layers[indices, :, -1] != 0).any())
    if all_empty:
        gains = _median_gains(target, untinted)
    else:
        gains = _least_squares_gains(target, share * untinted)
    # The larger gain would only clip at white.
    gains = gains.minimum(1 / untinted.flatten(2).amax(2).clamp_min(1 / MAX_GAIN))
    chain = decomposer.background_chain
    found = chain.params_from_target(untinted, target, share)
    if found is None:
        found = chain.tint(gains)
    elif all_empty:
        found = _fit_visible_ground(decomposer, untinted, target)
    if found is not None:
        params = found
    params = params.unflatten(0, (len(indices), count))
    backdrops = decomposer.render_backgrounds(params)
    residuals = (images - layers)[:, None] - visible[:, None] * backdrops
    best = residuals.square().flatten(2).sum(2).argmin(1)
    image = torch.arange(len(indices), device=indices.device)
    changed = state.background[indices] != best
    state.background[indices] = best
    state.background_params[indices] = params[image, best]
    state.backdrop[indices] = backdrops[image, best]
    return changed


def _fit_visible_ground(
    decomposer: Decomposer,
    background: Float[Tensor, "n C H W"],
    target: Float[Tensor, "n C H W"],
) -> Float[Tensor, "n R"]:
    """Fit a background to images in which nothing is explained yet.

    Pixels that differ from the fit by more than noise are objects or their shadows, and are
    left out of the next one.
    """
    params = target.new_zeros(len(target), decomposer.background_chain.num_params)
    for _ in range(GROUND_ITERATIONS):
        shown = decomposer.render_backgrounds(params[:, None])[:, 0]
        apart = (target - shown).abs().amax(1, keepdim=True)
        noise = 1.4826 * apart.flatten(1).median(1).values.clamp_min(MIN_NOISE)
        ground = (apart < GROUND_DEVIATIONS * noise[:, None, None, None]).to(target)
        found = decomposer.background_chain.params_from_target(background, target, ground)
        assert found is not None  # it was found before
        params = found
    return params


def _median_gains(
    images: Float[Tensor, "n C H W"], background: Float[Tensor, "n C H W"]
) -> Float[Tensor, "n C"]:
    """Return the median of image / background over pixels that are bright enough."""
    ratios = images / background.clamp_min(MIN_LEVEL)
    ratios = ratios.masked_fill(background < MIN_LEVEL, torch.nan)
    return ratios.flatten(2).nanmedian(2).values.nan_to_num(1.0).clamp_min(0.0)


def _least_squares_gains(
    images: Float[Tensor, "n C H W"], background: Float[Tensor, "n C H W"]
) -> Float[Tensor, "n C"]:
    """Return the gains that minimize the squared difference; 1 where all is black."""
    energy = background.square().flatten(2).sum(2)
    gains = (images * background).flatten(2).sum(2) / energy.clamp_min(1e-6)
    return torch.where(energy > 1e-6, gains, 1.0).clamp_min(0.0)


def background_follows_images(decomposer: Decomposer) -> bool:
    """Return whether backgrounds have a transform that can be fitted to images, as light."""
    image = torch.ones(1, decomposer.channels, *decomposer.canvas)
    weights = torch.ones_like(image[:, :1])
    chain = decomposer.background_chain
    return chain.params_from_target(image, image, weights) is not None

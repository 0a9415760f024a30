"""Distillation: train a predictor to reproduce the scenes that a teacher, a selector, finds.

Parameters are compared by their effect and not as numbers: where points of the canvas fall in
a sprite, and the pixels of the sprite. So rotations by 0 and 360 degrees are equal, and no
scale of a parameter has to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from celstack.geometry.sampling import pixel_centers
from celstack.geometry.soft_bounds import softclip
from celstack.interfaces.predictor import Prediction
from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss, objective
from celstack.model.parameter_groups import stated_groups_frozen
from celstack.model.transform_chain import TransformChain
from celstack.scene import Scene

GRID_SIDE = 4
"""Warps are compared at the points of a grid of so many rows and columns on the canvas."""
VISIBLE_ALPHA = 0.5
"""A layer covers the pixels where its alpha is more than this."""

Steps = Sequence[tuple[TransformChain, Float[Tensor, "n _"]]]
"""Chains with their parameters, from the sprite to the canvas."""
Denominator = Callable[[Bool[Tensor, "*any"]], Shaped[Tensor, ""]]
"""From a mask to what a sum over it is divided by."""


def count_at_least_one(where: Bool[Tensor, "*any"]) -> Shaped[Tensor, ""]:
    """Count the true values; at least 1, so that the mean over nothing is 0."""
    return where.sum().clamp_min(1)


def distillation_step(
    decomposer: Decomposer,
    images: Float[Tensor, "B C H W"],
    teacher: Selector,
    denominator: Denominator = count_at_least_one,
) -> tuple[Loss, Scene]:
    """Explain images with the teacher, and compare the predictions with its scenes.

    Args:
        decomposer: The model, whose predictor is trained.
        images: This rank's shard of the batch.
        teacher: The selector whose scenes are the targets.
        denominator: As in ``distillation_loss``.

    Returns:
        The loss, of which only the term ``teaching`` has gradients, and the teacher's scenes.
    """
    may_be_empty = teacher.empty_cost is not None and not decomposer.sprites_frozen
    with torch.no_grad():
        scene = teacher.explain(images, decomposer, None, may_be_empty)
        rendering = decomposer.render(scene)
        price = teacher.empty_cost or 0.0 if may_be_empty else 0.0
        masks = rendering.layers[:, :, -1].flatten(0, 1)
        loss = objective(images, scene, rendering.image, masks, price)
        visible = (masks > VISIBLE_ALPHA).to(images).view(*scene.sprite.shape, -1)
        overlap = visible @ visible.mT > 0
    prediction = decomposer.predict(images)
    with stated_groups_frozen(decomposer):
        teaching = distillation_loss(decomposer, prediction, scene, overlap, denominator)
    return Loss(loss.reconstruction, loss.sprites, teaching), scene


def distillation_loss(
    decomposer: Decomposer,
    prediction: Prediction,
    scene: Scene,
    overlap: Bool[Tensor, "B L L"],
    denominator: Denominator = count_at_least_one,
) -> Float[Tensor, ""]:
    """Return the distance of predictions from scenes, for the best matching of their layers.

    It is the sum of the mean distance of non-empty layers, the mean distance of backgrounds,
    and the mean cross-entropy of occlusion. Empty layers have no target: the selector leaves a
    layer empty if it explains nothing.

    Args:
        decomposer: The model that predicted.
        prediction: The parameters for all layers and sprites, with gradients.
        scene: The targets.
        overlap: Which layers of an image overlap; only their occlusion matters.
        denominator: What means are divided by; distributed training counts the global batch.
    """
    filled = scene.filled
    overlap = overlap & filled[:, :, None] & filled[:, None, :]
    with torch.no_grad():
        costs = _costs(decomposer, prediction, scene)
    matched = match_layers(costs * filled[:, :, None], overlap, _depth(decomposer, scene))
    distance = _layer_distance(decomposer, prediction, scene, matched)
    total = (distance * filled).sum() / denominator(filled)
    if decomposer.compositor.num_logits:
        pairs = overlap.tril(-1)
        entropy = _occlusion_cross_entropy(decomposer, prediction, scene, matched)
        total = total + (entropy * pairs).sum() / denominator(pairs)
    if decomposer.backgrounds is not None:
        total = total + _background_distance(decomposer, prediction, scene).mean()
    return total


def match_layers(
    costs: Float[Tensor, "B L L"],
    overlap: Bool[Tensor, "B L L"],
    depth: Int[Tensor, " L"] | None,
) -> Int[Tensor, "B L"]:
    """Assign a predicted layer (column) to each layer of a scene (row) at minimal total cost.

    Args:
        costs: The distance of each predicted layer from each layer of the scene.
        overlap: Which layers of the scene overlap.
        depth: How many layers each layer hides, where the compositor fixes the order. Layers
            that overlap then get their predicted layers in this order.
    """
    from scipy.optimize import linear_sum_assignment

    matched = [linear_sum_assignment(cost)[1].tolist() for cost in costs.cpu().numpy()]
    if depth is not None:
        hidden = depth.tolist()
        overlapping = overlap.tril(-1).flatten(1).any(1).nonzero()[:, 0].tolist()
        for image in overlapping:
            _sort_by_depth(matched[image], overlap[image].cpu(), hidden)
    return torch.tensor(matched, device=costs.device)


def _sort_by_depth(matched: list[int], overlap: Bool[Tensor, "L L"], depth: list[int]) -> None:
    """Permute, in place, the matches within each group of overlapping layers by depth."""
    from scipy.sparse.csgraph import connected_components

    _, groups = connected_components(overlap.numpy(), directed=False)
    for group in set(groups.tolist()):
        members = [layer for layer, own in enumerate(groups.tolist()) if own == group]
        members.sort(key=depth.__getitem__)
        ordered = sorted((matched[layer] for layer in members), key=depth.__getitem__)
        for layer, match in zip(members, ordered, strict=True):
            matched[layer] = match


def _depth(decomposer: Decomposer, scene: Scene) -> Int[Tensor, " L"] | None:
    """Count the layers that each layer hides; None if the occlusion is predicted per image."""
    if decomposer.compositor.num_logits:
        return None
    hides = decomposer.compositor.occlusion(scene.layer_params.new_zeros(1, 0), training=False)
    return hides[0].sum(1).long()


def _costs(
    decomposer: Decomposer, prediction: Prediction, scene: Scene
) -> Float[Tensor, "B L L"]:
    """Return the distance of each predicted layer (column) from each layer of the scene."""
    layers = range(scene.sprite.shape[1])
    matches = (torch.full_like(scene.sprite, layer) for layer in layers)
    distances = [_layer_distance(decomposer, prediction, scene, one) for one in matches]
    return torch.stack(distances, dim=2)


def _layer_distance(
    decomposer: Decomposer, prediction: Prediction, scene: Scene, matched: Int[Tensor, "B L"]
) -> Float[Tensor, "B L"]:
    """Return the distance of the matched predicted layers from those of the scene."""
    kinds = scene.sprite.clamp_min(0)
    image = torch.arange(len(scene), device=kinds.device)[:, None]
    sprites = decomposer.sprites.images().detach().index_select(0, kinds.flatten())

    def steps(of_sprite: Float[Tensor, "B L P"], of_layer: Float[Tensor, "B L Q"]) -> Steps:
        return [
            (decomposer.sprite_chain, of_sprite.flatten(0, 1)),
            (decomposer.layer_chain, of_layer.flatten(0, 1)),
        ]

    predicted = steps(
        prediction.sprite_params[image, matched, kinds], prediction.layer_params[image, matched]
    )
    target = steps(scene.sprite_params, scene.layer_params)
    return _distance(sprites, predicted, target).view_as(kinds)


def _background_distance(
    decomposer: Decomposer, prediction: Prediction, scene: Scene
) -> Float[Tensor, " B"]:
    """Return the distance of the predictions for the backgrounds of the scenes."""
    assert decomposer.backgrounds is not None
    assert scene.background is not None
    assert scene.background_params is not None
    backgrounds = decomposer.backgrounds.images().detach().index_select(0, scene.background)
    image = torch.arange(len(scene), device=scene.background.device)
    predicted = prediction.background_params[image, scene.background]
    chain = decomposer.background_chain
    return _distance(backgrounds, [(chain, predicted)], [(chain, scene.background_params)])


def _distance(
    images: Float[Tensor, "n D h w"], predicted: Steps, target: Steps
) -> Float[Tensor, " n"]:
    """Return the squared distance of warped points plus that of the pixels.

    Points are in half images; pixels are averaged over the target's opaque area.
    """
    (pixels, points), (target_pixels, target_points) = (
        _effect(images, steps) for steps in (predicted, target)
    )
    opaque = target_pixels[:, -1].flatten(1).sum(1).clamp_min(1.0)
    moved = (points - target_points).square().sum(2).mean(1)
    return moved + (pixels - target_pixels).square().flatten(1).sum(1) / opaque


def _effect(
    images: Float[Tensor, "n D h w"], steps: Steps
) -> tuple[Float[Tensor, "n D h w"], Float[Tensor, "n m 2"]]:
    """Return the changed images, premultiplied by alpha, and the points of a grid, pulled."""
    points = pixel_centers(GRID_SIDE, GRID_SIDE, like=images).expand(len(images), -1, -1)
    for chain, params in steps:
        images = chain.change_pixels(images, params)
    for chain, params in reversed(steps):
        points = chain.pull(points, params)
    alpha = softclip(images[:, -1:])
    return torch.cat([alpha * images[:, :-1], alpha], dim=1), points


def _occlusion_cross_entropy(
    decomposer: Decomposer,
    prediction: Prediction,
    scene: Scene,
    matched: Int[Tensor, "B L"],
) -> Float[Tensor, "B L L"]:
    """Return the cross-entropy of the predicted occlusion for each pair of layers."""
    hides = decomposer.compositor.occlusion(prediction.occlusion_logits, training=True)
    image = torch.arange(len(scene), device=matched.device)[:, None, None]
    hides = hides[image, matched[:, :, None], matched[:, None, :]]
    return binary_cross_entropy(hides, scene.occlusion, reduction="none")

"""Teaching: a predictor learns to say what a teacher, another selector, finds.

Parameters are compared by what they do, not as numbers: where points of the canvas look in a
sprite, and what the sprite looks like. So a turn and the same turn once more around are one,
and no parameter has a scale that would have to be known here.
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
from celstack.model.transform_chain import TransformChain
from celstack.scene import Scene

ACROSS = 4
"""Where points look is compared for so many rows, and columns, of the canvas."""
THERE = 0.5
"""A layer is where its alpha is more than this."""

Steps = Sequence[tuple[TransformChain, Float[Tensor, "n _"]]]
"""Chains with their parameters, from the sprite to the canvas."""
Counted = Callable[[Bool[Tensor, "*any"]], Shaped[Tensor, ""]]


def count(where: Bool[Tensor, "*any"]) -> Shaped[Tensor, ""]:
    """Count, at least 1, so that the mean over nothing is 0."""
    return where.sum().clamp_min(1)


def take_lesson(
    decomposer: Decomposer,
    images: Float[Tensor, "B C H W"],
    teacher: Selector,
    counted: Counted = count,
) -> tuple[Loss, Scene]:
    """Let a teacher explain images, and see how far the predictor is from saying the same."""
    may_be_empty = teacher.empty_cost is not None and not decomposer.sprites_frozen
    with torch.no_grad():
        scene = teacher.explain(images, decomposer, None, may_be_empty)
        rendering = decomposer.render(scene)
        price = teacher.empty_cost or 0.0 if may_be_empty else 0.0
        masks = rendering.layers[:, :, -1].flatten(0, 1)
        loss = objective(images, scene, rendering.image, masks, price)
        there = (masks > THERE).to(images).view(*scene.sprite.shape, -1)
        overlap = there @ there.mT > 0
    teaching = disagreement(decomposer, decomposer.predict(images), scene, overlap, counted)
    return Loss(loss.reconstruction, loss.sprites, teaching), scene


def disagreement(
    decomposer: Decomposer,
    prediction: Prediction,
    scene: Scene,
    overlap: Bool[Tensor, "B L L"],
    counted: Counted = count,
) -> Float[Tensor, ""]:
    """Return how far predictions are from scenes, whose layers may be predicted in any order.

    It is the mean distance of filled layers, of backgrounds, and the cross-entropy of which
    layer hides which, for pairs that ``overlap``. Of a layer that is empty nothing is asked: a
    selector finds out by itself that it explains nothing. ``counted`` says over how many the
    means are, which is not what is here when other processes have a part of the batch.
    """
    filled = scene.filled
    overlap = overlap & filled[:, :, None] & filled[:, None, :]
    with torch.no_grad():
        costs = _costs(decomposer, prediction, scene)
    chosen = pair(costs * filled[:, :, None], overlap, _depth(decomposer, scene))
    apart = _distance_of_layers(decomposer, prediction, scene, chosen)
    total = (apart * filled).sum() / counted(filled)
    if decomposer.compositor.num_logits:
        pairs = overlap.tril(-1)
        surprise = _disorder(decomposer, prediction, scene, chosen)
        total = total + (surprise * pairs).sum() / counted(pairs)
    if decomposer.backgrounds is not None:
        total = total + _distance_of_backgrounds(decomposer, prediction, scene).mean()
    return total


def pair(
    costs: Float[Tensor, "B L L"],
    overlap: Bool[Tensor, "B L L"],
    depth: Int[Tensor, " L"] | None,
) -> Int[Tensor, "B L"]:
    """Choose a predicted layer for each layer of a scene (rows), at least cost together.

    Where the compositor decides which layer hides which, ``depth`` says how many each hides:
    layers that overlap then take those chosen for them in their own order.
    """
    from scipy.optimize import linear_sum_assignment

    chosen = [linear_sum_assignment(cost)[1].tolist() for cost in costs.cpu().numpy()]
    if depth is not None:
        hides = depth.tolist()
        some = overlap.tril(-1).flatten(1).any(1).nonzero()[:, 0].tolist()
        for image in some:
            _keep_order(chosen[image], overlap[image].cpu(), hides)
    return torch.tensor(chosen, device=costs.device)


def _keep_order(own: list[int], overlap: Bool[Tensor, "L L"], hides: list[int]) -> None:
    """Exchange the choices of layers that overlap until those in front are in front."""
    from scipy.sparse.csgraph import connected_components

    _, groups = connected_components(overlap.numpy(), directed=False)
    for group in set(groups.tolist()):
        members = [layer for layer, its in enumerate(groups.tolist()) if its == group]
        members.sort(key=hides.__getitem__)
        taken = sorted((own[layer] for layer in members), key=hides.__getitem__)
        for layer, choice in zip(members, taken, strict=True):
            own[layer] = choice


def _depth(decomposer: Decomposer, scene: Scene) -> Int[Tensor, " L"] | None:
    """Count the layers that each layer hides, if that is the same for all images."""
    if decomposer.compositor.num_logits:
        return None
    hides = decomposer.compositor.occlusion(scene.layer_params.new_zeros(1, 0), training=False)
    return hides[0].sum(1).long()


def _costs(
    decomposer: Decomposer, prediction: Prediction, scene: Scene
) -> Float[Tensor, "B L L"]:
    """Return how far each predicted layer (columns) is from each layer of the scene."""
    layers = range(scene.sprite.shape[1])
    chosen = (torch.full_like(scene.sprite, layer) for layer in layers)
    distances = [_distance_of_layers(decomposer, prediction, scene, one) for one in chosen]
    return torch.stack(distances, dim=2)


def _distance_of_layers(
    decomposer: Decomposer, prediction: Prediction, scene: Scene, chosen: Int[Tensor, "B L"]
) -> Float[Tensor, "B L"]:
    """Return how far the predicted layers that are chosen are from those of the scene."""
    kinds = scene.sprite.clamp_min(0)
    image = torch.arange(len(scene), device=kinds.device)[:, None]
    sprites = decomposer.sprites.images().detach().index_select(0, kinds.flatten())

    def steps(of_sprite: Float[Tensor, "B L P"], of_layer: Float[Tensor, "B L Q"]) -> Steps:
        return [
            (decomposer.sprite_chain, of_sprite.flatten(0, 1)),
            (decomposer.layer_chain, of_layer.flatten(0, 1)),
        ]

    predicted = steps(
        prediction.sprite_params[image, chosen, kinds], prediction.layer_params[image, chosen]
    )
    found = steps(scene.sprite_params, scene.layer_params)
    return _distance(sprites, predicted, found).view_as(kinds)


def _distance_of_backgrounds(
    decomposer: Decomposer, prediction: Prediction, scene: Scene
) -> Float[Tensor, " B"]:
    """Return how far predictions are for the backgrounds of the scenes."""
    assert decomposer.backgrounds is not None
    assert scene.background is not None
    assert scene.background_params is not None
    backgrounds = decomposer.backgrounds.images().detach().index_select(0, scene.background)
    image = torch.arange(len(scene), device=scene.background.device)
    predicted = prediction.background_params[image, scene.background]
    chain = decomposer.background_chain
    return _distance(backgrounds, [(chain, predicted)], [(chain, scene.background_params)])


def _distance(
    images: Float[Tensor, "n D h w"], predicted: Steps, found: Steps
) -> Float[Tensor, " n"]:
    """Compare, by squares, where points look, in half images, and colours where opaque."""
    (looks, points), (wanted, places) = _effect(images, predicted), _effect(images, found)
    opaque = wanted[:, -1].flatten(1).sum(1).clamp_min(1.0)
    away = (points - places).square().sum(2).mean(1)
    return away + (looks - wanted).square().flatten(1).sum(1) / opaque


def _effect(
    images: Float[Tensor, "n D h w"], steps: Steps
) -> tuple[Float[Tensor, "n D h w"], Float[Tensor, "n m 2"]]:
    """Return what images come to look like, premultiplied, and where points look in them."""
    points = pixel_centers(ACROSS, ACROSS, like=images).expand(len(images), -1, -1)
    for chain, params in steps:
        images = chain.change_pixels(images, params)
    for chain, params in reversed(steps):
        points = chain.pull(points, params)
    alpha = softclip(images[:, -1:])
    return torch.cat([alpha * images[:, :-1], alpha], dim=1), points


def _disorder(
    decomposer: Decomposer,
    prediction: Prediction,
    scene: Scene,
    chosen: Int[Tensor, "B L"],
) -> Float[Tensor, "B L L"]:
    """Return the cross-entropy of which layer hides which."""
    hides = decomposer.compositor.occlusion(prediction.occlusion_logits, training=True)
    image = torch.arange(len(scene), device=chosen.device)[:, None, None]
    hides = hides[image, chosen[:, :, None], chosen[:, None, :]]
    return binary_cross_entropy(hides, scene.occlusion, reduction="none")

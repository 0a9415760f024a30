"""check_predictor: the laws of Predictor."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from celstack.interfaces.predictor import ActiveTransforms, Outline, Prediction, Predictor
from celstack.tensor_fields import tensor_fields
from celstack.testing.assertions import (
    check_same_start,
    check_unprepared,
    close,
    require_law,
    seeded,
    varied_images,
)

IMAGES = 3
FULL = Outline(
    image_shape=(3, 32, 32),
    layers=2,
    sprites=3,
    backgrounds=2,
    sprite_transforms=(3, 1),
    layer_transforms=(2, 3),
    background_transforms=(2,),
    occlusion_logits=1,
)
# A model may lack any of these; the shape of a prediction then has an axis of length 0.
ABSENCES: tuple[dict[str, Any], ...] = (
    {},
    {"layers": 1, "occlusion_logits": 0},
    {"sprite_transforms": ()},
    {"layer_transforms": ()},
    {"backgrounds": 0, "background_transforms": ()},
    {"background_transforms": ()},
)
PARTLY_ACTIVE = (
    ActiveTransforms((True, False), (False, True), (True,)),
    ActiveTransforms((False, False), (True, True), (True,)),
    ActiveTransforms((True, True), (False, False), (False,)),
)
STEPS = 5
"""The number of training steps while some transforms are inactive."""


@seeded()
def check_predictor(
    predictor: Predictor, *, image_shape: tuple[int, int, int] = FULL.image_shape
) -> None:
    """Check the laws of Predictor, for models with and without each kind of parameters.

    Args:
        predictor: A predictor that is not prepared.
        image_shape: The shape (C, H, W) of images to check it with.
    """
    check_unprepared(predictor)
    for absence in ABSENCES:
        outline = attrs.evolve(FULL, image_shape=image_shape, **absence)
        prepared = _prepare(predictor, outline)
        check_same_start(prepared, _prepare(predictor, outline))
        images = varied_images(IMAGES, image_shape)
        for training in (True, False):
            _check_start(prepared.train(training), outline, images)
        _check_gradients(prepared, images)
        _check_per_sprite(prepared.eval(), outline, images)
    outline = attrs.evolve(FULL, image_shape=image_shape)
    images = varied_images(IMAGES, image_shape)
    for active in PARTLY_ACTIVE:
        _check_rest(_prepare(predictor, outline).train(), outline, active, images)


def _prepare(predictor: Predictor, outline: Outline) -> Predictor:
    torch.manual_seed(1)
    prepared = copy.deepcopy(predictor)
    prepared.prepare(outline)
    return prepared


def _check_start(predictor: Predictor, outline: Outline, images: Tensor) -> None:
    layers = outline.layers
    expected = {
        "sprite_params": (IMAGES, layers, outline.sprites, outline.sprite_params),
        "layer_params": (IMAGES, layers, outline.layer_params),
        "background_params": (IMAGES, outline.backgrounds, outline.background_params),
        "occlusion_logits": (IMAGES, outline.occlusion_logits),
    }
    for name, values in tensor_fields(predictor(images)).items():
        shape = tuple(values.shape)
        law = f"{name} has the shape {expected[name]} for {outline}"
        require_law(predictor, shape == expected[name], f"{law}, but it is {shape}")
        law = "before the first training step all predictions are zero, but {} is not"
        require_law(predictor, not values.any(), law.format(name))


def _check_gradients(predictor: Predictor, images: Tensor) -> None:
    values = tensor_fields(predictor.train()(images)).values()
    learned = [value for value in values if value.numel()]
    law = "gradients reach its parameters, so that it can leave the rest pose"
    require_law(predictor, all(value.requires_grad for value in learned), law)
    weighted = torch.stack([(value * torch.randn_like(value)).sum() for value in learned])
    found = torch.autograd.grad(weighted.sum(), list(predictor.parameters()), allow_unused=True)
    require_law(predictor, any(g is not None and bool(g.any()) for g in found), law)


def _check_rest(
    predictor: Predictor, outline: Outline, active: ActiveTransforms, images: Tensor
) -> None:
    """Check that weights of inactive transforms do not change, even with weight decay."""
    with torch.no_grad():  # away from zero, where no gradient passes the last layer
        for parameter in predictor.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    used, unused = _columns(outline, active)
    own = _reached(predictor, images, unused) - _reached(predictor, images, used)
    before = {id(p): p.detach().clone() for p in predictor.parameters()}
    optimizer = torch.optim.Adam(predictor.parameters(), weight_decay=0.1)
    predictor.activate(active)
    for _ in range(STEPS):
        optimizer.zero_grad()
        _weighted(predictor(images), used).backward()
        optimizer.step()
    for name, parameter in predictor.named_parameters():
        stays = id(parameter) not in own or torch.equal(before[id(parameter)], parameter)
        law = "weights that serve only inactive transforms get no gradient, but training"
        require_law(predictor, stays, f"{law} changed {name}")
    chains = (active.sprite, active.layer, active.background)
    predictor.activate(ActiveTransforms(*((True,) * len(chain) for chain in chains)))
    law = "a transform that is active again is predicted by the weights it had"
    require_law(predictor, _reached(predictor, images, unused) >= own, law)


def _columns(
    outline: Outline, active: ActiveTransforms
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Mark the parameters of active transforms, and those of inactive ones."""
    sizes = {
        "sprite_params": (outline.sprite_transforms, active.sprite),
        "layer_params": (outline.layer_transforms, active.layer),
        "background_params": (outline.background_transforms, active.background),
    }
    used = {
        name: torch.tensor([a for n, a in zip(*both, strict=True) for _ in range(n)])
        for name, both in sizes.items()
    }
    return used, {name: ~columns for name, columns in used.items()}


def _weighted(prediction: Prediction, columns: dict[str, Tensor]) -> Tensor:
    values = tensor_fields(prediction)
    return torch.stack(
        [
            (values[name][..., some] * (1.0 + values[name][..., some])).sum()
            for name, some in columns.items()
        ]
    ).sum()


def _reached(predictor: Predictor, images: Tensor, columns: dict[str, Tensor]) -> set[int]:
    """List the parameters on which these columns of predictions depend."""
    parameters: list[nn.Parameter] = list(predictor.parameters())
    loss = _weighted(predictor(images), columns)
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(parameters, found, strict=True)
    return {id(p) for p, gradient in pairs if gradient is not None and bool(gradient.any())}


@torch.no_grad()
def _check_per_sprite(predictor: Predictor, outline: Outline, images: Tensor) -> None:
    own = {id(parameter) for parameter in predictor.parameters()}
    listed = predictor.per_sprite()
    known = all(id(parameter) in own for parameter, _ in listed)
    require_law(predictor, known, "per_sprite lists parameters of its own, but some are not")
    law = "every parameter that per_sprite lists comes with the axis that runs over sprites"
    for parameter, axis in listed:
        fits = axis < parameter.ndim and parameter.shape[axis] == outline.sprites
        require_law(predictor, fits, law)
    for parameter in predictor.parameters():  # away from zero, where all sprites are alike
        parameter.add_(0.1 * torch.randn_like(parameter))
    before = tensor_fields(predictor(images))
    alone = tensor_fields(predictor(images[:1]))
    for name, values in before.items():
        same = close(alone[name], values[:1], 1e-4)
        require_law(
            predictor, same, f"in eval mode {name} of an image depend on no other image"
        )
    if not listed:
        return
    order = torch.arange(outline.sprites).roll(1)
    for parameter, axis in listed:
        parameter.copy_(parameter.index_select(axis, order))
    after = tensor_fields(predictor(images))
    swapped = close(after["sprite_params"], before["sprite_params"][:, :, order], 1e-4)
    law = "swapping sprites in what per_sprite lists swaps their predictions, and no others"
    others = all(close(after[name], before[name]) for name in before if name != "sprite_params")
    require_law(predictor, swapped and others, law)

"""The laws of predictors."""

from __future__ import annotations

import copy

import attrs
import torch
from torch import Tensor

from celstack.interfaces.predictor import Outline, Prediction, Predictor
from celstack.testing.laws import (
    check_same_start,
    check_unprepared,
    close,
    demand,
    seeded,
    varied_images,
)

IMAGES = 3
FULL = Outline(
    image_shape=(3, 32, 32),
    layers=2,
    sprites=3,
    backgrounds=2,
    sprite_params=4,
    layer_params=5,
    background_params=2,
    occlusion_logits=1,
)
# A model may lack any of these; a predictor then has nothing to say about it.
ABSENCES: tuple[dict[str, int], ...] = (
    {},
    {"layers": 1, "occlusion_logits": 0},
    {"sprite_params": 0},
    {"layer_params": 0},
    {"backgrounds": 0, "background_params": 0},
    {"background_params": 0},
)


@seeded()
def check_predictor(
    predictor: Predictor, *, image_shape: tuple[int, int, int] = FULL.image_shape
) -> None:
    """Check the laws of Predictor, for models that have everything and that lack something."""
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
    for name, values in _values(predictor(images)).items():
        shape = tuple(values.shape)
        law = f"{name} has the shape {expected[name]} for {outline}"
        demand(predictor, shape == expected[name], f"{law}, but it is {shape}")
        law = "before the first training step all predictions are zero, but {} is not"
        demand(predictor, not values.any(), law.format(name))


def _check_gradients(predictor: Predictor, images: Tensor) -> None:
    values = _values(predictor.train()(images)).values()
    learned = [value for value in values if value.numel()]
    law = "gradients reach its parameters, so that it can leave the rest pose"
    demand(predictor, all(value.requires_grad for value in learned), law)
    weighted = torch.stack([(value * torch.randn_like(value)).sum() for value in learned])
    found = torch.autograd.grad(weighted.sum(), list(predictor.parameters()), allow_unused=True)
    demand(predictor, any(g is not None and bool(g.any()) for g in found), law)


@torch.no_grad()
def _check_per_sprite(predictor: Predictor, outline: Outline, images: Tensor) -> None:
    own = {id(parameter) for parameter in predictor.parameters()}
    listed = predictor.per_sprite()
    known = all(id(parameter) in own for parameter, _ in listed)
    demand(predictor, known, "per_sprite lists parameters of its own, but some are not")
    law = "every parameter that per_sprite lists comes with the axis that runs over sprites"
    for parameter, axis in listed:
        fits = axis < parameter.ndim and parameter.shape[axis] == outline.sprites
        demand(predictor, fits, law)
    for parameter in predictor.parameters():  # away from zero, where all sprites are alike
        parameter.add_(0.1 * torch.randn_like(parameter))
    before = _values(predictor(images))
    alone = _values(predictor(images[:1]))
    for name, values in before.items():
        same = close(alone[name], values[:1], 1e-4)
        demand(predictor, same, f"in eval mode {name} of an image depend on no other image")
    if not listed:
        return
    order = torch.arange(outline.sprites).roll(1)
    for parameter, axis in listed:
        parameter.copy_(parameter.index_select(axis, order))
    after = _values(predictor(images))
    swapped = close(after["sprite_params"], before["sprite_params"][:, :, order], 1e-4)
    law = "swapping sprites in what per_sprite lists swaps their predictions, and no others"
    others = all(close(after[name], before[name]) for name in before if name != "sprite_params")
    demand(predictor, swapped and others, law)


def _values(prediction: Prediction) -> dict[str, Tensor]:
    return {field.name: getattr(prediction, field.name) for field in attrs.fields(Prediction)}

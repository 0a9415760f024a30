"""check_selector: the laws of Selector."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.errors import CelstackError
from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.model.objective import squared_error
from celstack.scene import EMPTY, Scene
from celstack.tensor_fields import tensor_fields
from celstack.testing.assertions import close, require_law, seeded
from celstack.testing.model import plain_decomposer

IMAGES = 4
CANVAS = (6, 8)


@seeded()
def check_selector(
    selector: Selector, *, decomposer: Callable[[Selector], Decomposer] | None = None
) -> None:
    """Check the laws of Selector in a model of plain parts.

    A selector that refuses a model of two layers is checked with one.

    Args:
        selector: The selector.
        decomposer: Makes a model around the selector, if it needs particular parts.
    """
    cost = selector.empty_cost
    priced = cost is None or (isinstance(cost, float | int) and cost >= 0)
    require_law(selector, priced, "empty_cost is 0 or more, or None")
    for with_background in (False, True):
        if decomposer is None:
            model = _plain_model(selector, with_background)
        else:
            model = decomposer(selector)
        images = _images()
        model.prepare(images)
        with torch.no_grad():
            for parameter in model.parameters():  # away from the rest pose
                parameter.add_(0.2 * torch.randn_like(parameter))
        for noise in (None, model.draw_noise(0.3)):
            for allow_empty in (False, True) if cost is not None else (False,):
                scene = selector.explain(images, model, noise, allow_empty)
                _check_scene(selector, scene, model, allow_empty)
                _check_choice(selector, scene, model, images, noise, allow_empty)
                if allow_empty:
                    _check_empty(selector, scene, model, images, noise)
        _check_gradients(selector, model, images)


def _plain_model(selector: Selector, with_background: bool) -> Decomposer:
    try:
        return plain_decomposer(selector, with_background=with_background)
    except CelstackError:
        return plain_decomposer(selector, with_background=with_background, layers=1)


def _images() -> Float[Tensor, "B C H W"]:
    images = torch.rand(IMAGES, 3, *CANVAS)
    images[0] = 0.0  # where there is no background, nothing beats leaving this one empty
    return images


def _check_scene(
    selector: Selector, scene: Scene, model: Decomposer, allow_empty: bool
) -> None:
    outline = model.outline()
    shape = (IMAGES, outline.layers)
    expected = {
        "sprite": shape,
        "sprite_params": (*shape, outline.sprite_params),
        "layer_params": (*shape, outline.layer_params),
        "occlusion": (*shape, outline.layers),
    }
    if outline.backgrounds:
        expected["background"] = (IMAGES,)
        expected["background_params"] = (IMAGES, outline.background_params)
    for name, size in expected.items():
        value = getattr(scene, name)
        fits = value is not None and tuple(value.shape) == size
        require_law(selector, fits, f"{name} of a scene has the shape {size}")
    lowest = EMPTY if allow_empty else 0
    valid = bool(((scene.sprite >= lowest) & (scene.sprite < outline.sprites)).all())
    law = "a layer shows a sprite of the model, or EMPTY where that is allowed"
    require_law(selector, valid, f"{law}, but it chose {scene.sprite.unique().tolist()}")
    if scene.background is not None:
        background = scene.background
        valid = bool(((background >= 0) & (background < outline.backgrounds)).all())
        require_law(selector, valid, "background is an index of the model's backgrounds")


def _check_choice(
    selector: Selector,
    scene: Scene,
    model: Decomposer,
    images: Tensor,
    noise: Tensor | None,
    allow_empty: bool,
) -> None:
    law = "the same images give the same choice, but {}"
    before = torch.get_rng_state()
    again = selector.explain(images, model, noise, allow_empty)
    drawn = not torch.equal(torch.get_rng_state(), before)
    told = "it draws from torch's random state; use a torch.Generator with a fixed seed"
    require_law(selector, not drawn, law.format(told))
    # An image that was explained alone, in between, must not matter.
    selector.explain(images[-1:], model, noise, allow_empty)
    third = selector.explain(images, model, noise, allow_empty)
    same = _same(again, scene) and _same(third, scene)
    require_law(selector, same, law.format("another call returns another scene"))
    with torch.no_grad():
        again = selector.explain(images, model, noise, allow_empty)
    require_law(
        selector,
        torch.equal(again.sprite, scene.sprite),
        "choosing needs no gradient, but without gradients the choice differs",
    )


def _same(one: Scene, other: Scene) -> bool:
    left, right = tensor_fields(one), tensor_fields(other)
    return left.keys() == right.keys() and all(close(left[k], right[k]) for k in left)


@torch.no_grad()
def _check_empty(
    selector: Selector, scene: Scene, model: Decomposer, images: Tensor, noise: Tensor | None
) -> None:
    nothing = scene.evolve(sprite=torch.full_like(scene.sprite, EMPTY))
    filled = scene.filled.sum(1)
    cost = squared_error(images, model.render(scene, noise).image)
    cost = cost + (selector.empty_cost or 0.0) * filled
    empty = squared_error(images, model.render(nothing, noise).image)
    law = "a scene costs no more than one whose layers are all empty, but it does"
    require_law(selector, bool((cost <= empty + 1e-6).all()), law)


def _check_gradients(selector: Selector, model: Decomposer, images: Tensor) -> None:
    asked: list[object] = []
    handle = None
    if model.predictor is not None:
        handle = model.predictor.register_forward_hook(lambda *call: asked.append(call[-1]))
    scene = selector.explain(images, model, None, False)
    if handle is not None:
        handle.remove()
    loss = squared_error(images, model.render(scene).image).mean()
    law = "what was chosen keeps the gradient of its {}, but there is none"
    require_law(selector, _moves(loss, list(model.sprites.parameters())), law.format("sprites"))
    if model.predictor is not None and asked:
        moved = _moves(loss, list(model.predictor.parameters()))
        require_law(selector, moved, law.format("parameters"))


def _moves(loss: Tensor, parameters: list[torch.nn.Parameter]) -> bool:
    if not loss.requires_grad:
        return False
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return any(gradient is not None and bool(gradient.any()) for gradient in found)

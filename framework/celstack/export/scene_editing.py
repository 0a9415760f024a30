"""Edit scenes as in the paper's Fig. 5: other sprites, colors, positions and sizes.

Every function returns the edited scene, or None if the model does not support the edit. What
is given for B images of L layers may also be given once for all of them: ``(0.5, 0)`` moves
every object to the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from celstack.errors import CelstackError
from celstack.geometry.sampling import pixel_centers
from celstack.model.decomposer import Decomposer
from celstack.model.scene_check import check_scene
from celstack.model.transform_chain import TransformChain
from celstack.scene import EMPTY, Scene
from celstack.text import describe_error

MIN_BRIGHTNESS = 0.2
"""Darker sprites are not brightened any further when they are recolored."""

Numbers = Tensor | NDArray[Any] | Sequence[Any] | float | int
"""A tensor, or what makes one."""


def swap_sprites(decomposer: Decomposer, scene: Scene, by: Numbers) -> Scene | None:
    """Replace the sprite of each layer by the one that is ``by`` indices later, cyclically.

    Args:
        decomposer: The model.
        scene: The scenes of B images with L layers.
        by: Integers, B x L, or one for all layers.
    """
    check_scene(scene, decomposer.outline())
    by = _expand("by", by, scene.sprite, tuple(scene.sprite.shape))
    count = decomposer.sprites.count
    if count == 1:
        return None
    swapped = (scene.sprite + by) % count
    return scene.evolve(sprite=torch.where(scene.filled, swapped, EMPTY))


def recolor_sprites(decomposer: Decomposer, scene: Scene, colors: Numbers) -> Scene | None:
    """Recolor each layer's sprite; one of uniform brightness gets exactly the color.

    Args:
        decomposer: The model.
        scene: The scenes of B images with L layers.
        colors: From 0 to 1, B x L x channels, or one color for all layers.
    """
    check_scene(scene, decomposer.outline())
    colors = _expand(
        "colors", colors, scene.layer_params, (*scene.sprite.shape, decomposer.channels)
    )
    images = decomposer.sprites.images().detach().clamp(0, 1)
    weight = images[:, -1:].sum((2, 3)).clamp_min(1e-6)
    tone = (images[:, :-1] * images[:, -1:]).sum((2, 3)) / weight
    brightness = tone.amax(1).clamp_min(MIN_BRIGHTNESS)[scene.sprite.clamp_min(0)]
    gains = (colors / brightness[:, :, None]).flatten(0, 1)
    return _edit_params(decomposer, scene, lambda chain, params: chain.recolor(params, gains))


def move_objects(decomposer: Decomposer, scene: Scene, by: Numbers) -> Scene | None:
    """Move objects right and down, in halves of the canvas's longer side.

    Args:
        decomposer: The model.
        scene: The scenes of B images with L layers.
        by: Right and down, B x L x 2, or two numbers for all layers.

    Example:
        >>> moved = celstack.move_objects(run.decomposer, scene, (0.25, 0.0))
        >>> image = run.decomposer.render(moved).image
    """
    check_scene(scene, decomposer.outline())
    by = _expand("by", by, scene.layer_params, (*scene.sprite.shape, 2))
    return _precompose(decomposer, scene, torch.ones_like(by[:, :, :1]), -by)


def resize_objects(decomposer: Decomposer, scene: Scene, factor: float | int) -> Scene | None:
    """Scale objects about their centers."""
    check_scene(scene, decomposer.outline())
    if not (isinstance(factor, Real) and math.isfinite(factor) and factor > 0):
        raise CelstackError(f"factor={factor!r}: must be a number of more than 0")
    shrink = scene.layer_params.new_full((*scene.sprite.shape, 1), 1 / factor)
    centers = object_centers(decomposer, scene)
    return _precompose(decomposer, scene, shrink, centers * (1 - shrink))


def object_centers(decomposer: Decomposer, scene: Scene) -> Float[Tensor, "B L 2"]:
    """Return the center of mass of each layer's alpha; of the canvas for an empty layer."""
    with torch.no_grad():
        alpha = decomposer.render(scene).layers[:, :, -1].clamp(0, 1).flatten(2)
    points = pixel_centers(*decomposer.canvas, like=alpha)
    return (alpha @ points) / alpha.sum(2, keepdim=True).clamp_min(1e-6)


def _expand(name: str, values: Numbers, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Convert numbers to a tensor of this shape and of the type of ``like``."""
    try:
        given = torch.as_tensor(values, device=like.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CelstackError(f"{name}: not numbers: {describe_error(error)}") from None
    if given.is_floating_point() and not like.is_floating_point():
        raise CelstackError(f"{name}: must be integers, not {given.dtype}")
    if not torch.isfinite(given).all():
        raise CelstackError(f"{name}: must be finite numbers")
    try:
        return given.to(like).broadcast_to(shape)
    except RuntimeError:
        wanted = f"this scene needs {shape}, or one value for all layers"
        raise CelstackError(f"{name}: has shape {tuple(given.shape)}; {wanted}") from None


def _precompose(
    decomposer: Decomposer,
    scene: Scene,
    linear: Float[Tensor, "B L 1"],
    shift: Float[Tensor, "B L 2"],
) -> Scene | None:
    """Precompose each layer's warp with the map ``linear * point + shift`` of the canvas."""
    stretch = torch.eye(2).to(linear) * linear[..., None]
    change = torch.cat([stretch, shift[..., None]], dim=3).flatten(0, 1)
    if torch.equal(change, torch.eye(2, 3).to(change).expand_as(change)):
        return scene
    return _edit_params(
        decomposer, scene, lambda chain, params: chain.precompose(params, change)
    )


def _edit_params(
    decomposer: Decomposer,
    scene: Scene,
    change: Callable[[TransformChain, Float[Tensor, "n P"]], Float[Tensor, "n P"] | None],
) -> Scene | None:
    """Change the layer parameters if the layer chain supports it, else those of sprites."""
    for chain, field in (
        (decomposer.layer_chain, "layer_params"),
        (decomposer.sprite_chain, "sprite_params"),
    ):
        before = getattr(scene, field)
        after = change(chain, before.flatten(0, 1))
        if after is not None and not torch.allclose(after, before.flatten(0, 1)):
            return scene.evolve(**{field: after.view_as(before)})
    return None

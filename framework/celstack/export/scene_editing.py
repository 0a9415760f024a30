"""Edit scenes as in the paper's Fig. 5: other sprites, colors, positions and sizes.

Every function returns the edited scene, or None if the model does not support the edit.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.sampling import pixel_centers
from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.scene import EMPTY, Scene

MIN_BRIGHTNESS = 0.2
"""Darker sprites are not brightened any further when they are recolored."""


def swap_sprites(decomposer: Decomposer, scene: Scene, by: Int[Tensor, "B L"]) -> Scene | None:
    """Replace the sprite of each layer by the one that is ``by`` indices later, cyclically."""
    count = decomposer.sprites.count
    if count == 1:
        return None
    swapped = (scene.sprite + by) % count
    return scene.evolve(sprite=torch.where(scene.filled, swapped, EMPTY))


def recolor_sprites(
    decomposer: Decomposer, scene: Scene, colors: Float[Tensor, "B L C"]
) -> Scene | None:
    """Recolor each layer's sprite; one of uniform brightness gets exactly the color."""
    images = decomposer.sprites.images().detach().clamp(0, 1)
    weight = images[:, -1:].sum((2, 3)).clamp_min(1e-6)
    tone = (images[:, :-1] * images[:, -1:]).sum((2, 3)) / weight
    brightness = tone.amax(1).clamp_min(MIN_BRIGHTNESS)[scene.sprite.clamp_min(0)]
    gains = (colors / brightness[:, :, None]).flatten(0, 1)
    return _edit_params(decomposer, scene, lambda chain, params: chain.recolor(params, gains))


def move_objects(
    decomposer: Decomposer, scene: Scene, by: Float[Tensor, "B L 2"]
) -> Scene | None:
    """Move objects right and down, in halves of the canvas's longer side."""
    return _precompose(decomposer, scene, torch.ones_like(by[:, :, :1]), -by)


def resize_objects(decomposer: Decomposer, scene: Scene, factor: float) -> Scene | None:
    """Scale objects about their centers."""
    shrink = scene.layer_params.new_full((*scene.sprite.shape, 1), 1 / factor)
    centers = object_centers(decomposer, scene)
    return _precompose(decomposer, scene, shrink, centers * (1 - shrink))


def object_centers(decomposer: Decomposer, scene: Scene) -> Float[Tensor, "B L 2"]:
    """Return the center of mass of each layer's alpha; of the canvas for an empty layer."""
    with torch.no_grad():
        alpha = decomposer.render(scene).layers[:, :, -1].clamp(0, 1).flatten(2)
    points = pixel_centers(*decomposer.canvas, like=alpha)
    return (alpha @ points) / alpha.sum(2, keepdim=True).clamp_min(1e-6)


def _precompose(
    decomposer: Decomposer,
    scene: Scene,
    linear: Float[Tensor, "B L 1"],
    shift: Float[Tensor, "B L 2"],
) -> Scene | None:
    """Precompose each layer's warp with the map ``linear * point + shift`` of the canvas."""
    stretch = torch.eye(2).to(linear) * linear[..., None]
    change = torch.cat([stretch, shift[..., None]], dim=3).flatten(0, 1)
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

"""Variations: scenes edited as in the paper's Fig. 5, by other values in their fields."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.sampling import pixel_centers
from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.scene import EMPTY, Scene

FAINTEST = 0.2
"""Sprites darker than this are not brightened any more when they get another colour."""


def swap(decomposer: Decomposer, scene: Scene, by: Int[Tensor, "B L"]) -> Scene | None:
    """Show other sprites: in each layer the one that is so many numbers later.

    None, as of the others below, where that is not possible: here, with a single sprite.
    """
    count = decomposer.sprites.count
    if count == 1:
        return None
    later = (scene.sprite + by) % count
    return scene.evolve(sprite=torch.where(scene.filled, later, EMPTY))


def recolour(
    decomposer: Decomposer, scene: Scene, colours: Float[Tensor, "B L C"]
) -> Scene | None:
    """Show sprites in other colours: exactly these, where a sprite has but one brightness."""
    images = decomposer.sprites.images().detach().clamp(0, 1)
    weight = images[:, -1:].sum((2, 3)).clamp_min(1e-6)
    tone = (images[:, :-1] * images[:, -1:]).sum((2, 3)) / weight
    brightness = tone.amax(1).clamp_min(FAINTEST)[scene.sprite.clamp_min(0)]
    gains = (colours / brightness[:, :, None]).flatten(0, 1)
    return _edit(decomposer, scene, lambda chain, params: chain.recolor(params, gains))


def move(decomposer: Decomposer, scene: Scene, by: Float[Tensor, "B L 2"]) -> Scene | None:
    """Move objects, right and down, in halves of the canvas's longer side."""
    return _look_through(decomposer, scene, torch.ones_like(by[:, :, :1]), -by)


def resize(decomposer: Decomposer, scene: Scene, factor: float) -> Scene | None:
    """Make objects larger or smaller, each where it is."""
    shrink = scene.layer_params.new_full((*scene.sprite.shape, 1), 1 / factor)
    middle = centres(decomposer, scene)
    return _look_through(decomposer, scene, shrink, middle * (1 - shrink))


def centres(decomposer: Decomposer, scene: Scene) -> Float[Tensor, "B L 2"]:
    """Return the middle of each object on the canvas; that of the canvas for none."""
    with torch.no_grad():
        alpha = decomposer.render(scene).layers[:, :, -1].clamp(0, 1).flatten(2)
    points = pixel_centers(*decomposer.canvas, like=alpha)
    return (alpha @ points) / alpha.sum(2, keepdim=True).clamp_min(1e-6)


def _look_through(
    decomposer: Decomposer,
    scene: Scene,
    linear: Float[Tensor, "B L 1"],
    shift: Float[Tensor, "B L 2"],
) -> Scene | None:
    """Let each layer's canvas look at ``linear`` times its points, and ``shift`` farther."""
    stretch = torch.eye(2).to(linear) * linear[..., None]
    change = torch.cat([stretch, shift[..., None]], dim=3).flatten(0, 1)
    return _edit(decomposer, scene, lambda chain, params: chain.precompose(params, change))


def _edit(
    decomposer: Decomposer,
    scene: Scene,
    change: Callable[[TransformChain, Float[Tensor, "n P"]], Float[Tensor, "n P"] | None],
) -> Scene | None:
    """Change the layers' parameters if they can be, else those of their sprites."""
    for chain, field in (
        (decomposer.layer_chain, "layer_params"),
        (decomposer.sprite_chain, "sprite_params"),
    ):
        before = getattr(scene, field)
        after = change(chain, before.flatten(0, 1))
        if after is not None and not torch.allclose(after, before.flatten(0, 1)):
            return scene.evolve(**{field: after.view_as(before)})
    return None

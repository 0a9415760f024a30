"""Candidates: every sprite on every layer, as the selectors compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.interfaces.predictor import Prediction
from celstack.sampling import canvas_points, coverage, look_up
from celstack.softclip import softclip
from celstack.windows import find_windows, points_at, repeat

if TYPE_CHECKING:
    from celstack.model import Decomposer


@attrs.frozen(eq=False)
class Candidates:
    """All K sprites as they would look on each of L layers, at the pixels they can reach.

    ``pixels`` are those of a window around everything the layer's candidates may show;
    elsewhere all of them are transparent.
    """

    pixels: Int[Tensor, "B L n"]
    colour: Float[Tensor, "B L K C n"]
    alpha: Float[Tensor, "B L K n"]


@torch.no_grad()
def render_candidates(
    decomposer: Decomposer, prediction: Prediction, noise: Float[Tensor, "K H W"] | None
) -> Candidates:
    """Render all candidates. No gradient: the one that is chosen is rendered again."""
    batch, layers, count, _ = prediction.sprite_params.shape
    of_sprite = prediction.sprite_params.flatten(0, 2)
    of_layer = prediction.layer_params.flatten(0, 1)
    images = _change_pixels(decomposer, of_sprite, of_layer, count)
    size = (images.shape[-2], images.shape[-1])

    moves = decomposer.sprite_chain.moves()
    if not moves:
        # All sprites of a layer look through the same points: let them be channels.
        images = images.view(batch * layers, -1, *size)

    def pull(points: Tensor) -> Tensor:
        points = decomposer.layer_chain.pull(points, of_layer)
        if moves:
            points = repeat(points, count)
            points = decomposer.sprite_chain.pull(points, of_sprite)
        return points

    def pull_all(points: Tensor) -> Tensor:
        return pull(points.expand(batch * layers, -1, -1))

    pixels = find_windows(pull_all, size, decomposer.canvas, batch * layers, like=images)
    points = pull(points_at(canvas_points(*decomposer.canvas, like=images), pixels))

    found = look_up(images, points, "zeros").view(batch, layers, count, -1, pixels.shape[1])
    alpha = found[:, :, :, -1]
    if noise is not None:
        area = coverage(points, size).view(batch, layers, -1, pixels.shape[1])
        speckle = noise.flatten(1)[:, pixels].view(count, batch, layers, -1)
        alpha = torch.addcmul(alpha, area, speckle.permute(1, 2, 0, 3))
    return Candidates(pixels.view(batch, layers, -1), found[:, :, :, :-1], softclip(alpha))


def _change_pixels(
    decomposer: Decomposer, of_sprite: Tensor, of_layer: Tensor, count: int
) -> Float[Tensor, "n D h w"]:
    images = decomposer.sprite_images()
    images = images.repeat(len(of_layer), 1, 1, 1)
    images = decomposer.sprite_chain.change_pixels(images, of_sprite)
    return decomposer.layer_chain.change_pixels(
        images, of_layer.repeat_interleave(count, dim=0)
    )

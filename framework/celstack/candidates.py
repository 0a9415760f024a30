"""Candidates: every sprite on every layer, as the selectors compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.interfaces.predictor import Prediction
from celstack.sampling import coverage
from celstack.softclip import softclip
from celstack.windows import look_through, repeat

if TYPE_CHECKING:
    from celstack.model import Decomposer


@attrs.frozen(eq=False)
class Candidates:
    """All K sprites as they would look on one layer, at the pixels they can reach.

    ``pixels`` are those of a window around everything the candidates may show; elsewhere
    all of them are transparent.
    """

    pixels: Int[Tensor, "B n"]
    colour: Float[Tensor, "B K C n"]
    alpha: Float[Tensor, "B K n"]


@torch.no_grad()
def render_candidates(
    decomposer: Decomposer, prediction: Prediction, noise: Float[Tensor, "K H W"] | None
) -> list[Candidates]:
    """Render the candidates of every layer.

    No gradient: the one that is chosen is rendered again. Layer by layer, because what is
    needed on the way is several times larger than what is kept.
    """
    pairs = zip(
        prediction.sprite_params.unbind(1), prediction.layer_params.unbind(1), strict=True
    )
    return [_render(decomposer, of_sprite, of_layer, noise) for of_sprite, of_layer in pairs]


def _render(
    decomposer: Decomposer,
    sprite_params: Float[Tensor, "B K P"],
    of_layer: Float[Tensor, "B Q"],
    noise: Float[Tensor, "K H W"] | None,
) -> Candidates:
    batch, count, _ = sprite_params.shape
    of_sprite = sprite_params.flatten(0, 1)
    images = decomposer.sprite_images().repeat(batch, 1, 1, 1)
    images = decomposer.sprite_chain.change_pixels(images, of_sprite)
    of_each = of_layer.repeat_interleave(count, dim=0)
    images = decomposer.layer_chain.change_pixels(images, of_each)
    size = (images.shape[-2], images.shape[-1])

    moves = decomposer.sprite_chain.moves()
    if not moves:
        # All sprites of a layer look through the same points: let them be channels.
        images = images.view(batch, -1, *size)

    def pull(points: Tensor) -> Tensor:
        points = decomposer.layer_chain.pull(points, of_layer)
        return (
            decomposer.sprite_chain.pull(repeat(points, count), of_sprite) if moves else points
        )

    pixels, points, found = look_through(images, pull, batch, decomposer.canvas)
    found = found.view(batch, count, -1, pixels.shape[1])
    alpha = found[:, :, -1]
    if noise is not None:
        area = coverage(points, size).view(batch, -1, pixels.shape[1])
        alpha = torch.addcmul(alpha, area, noise.flatten(1)[:, pixels].movedim(0, 1))
    return Candidates(pixels, found[:, :, :-1], softclip(alpha))

"""Candidates: every sprite on every layer, rendered for selectors to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
from jaxtyping import Float
from torch import Tensor

from celstack.geometry.windows import Windows
from celstack.interfaces.predictor import Prediction
from celstack.model.sprite_rendering import render_sprites
from celstack.model.sprite_warp import SpriteWarp

if TYPE_CHECKING:
    from celstack.model.decomposer import Decomposer


@attrs.frozen(eq=False)
class Candidates:
    """All K sprites as they would appear on one layer, in windows that contain all of them.

    ``paint`` is color times alpha. Outside the windows all candidates are transparent.
    """

    windows: Windows
    paint: Float[Tensor, "B K C h w"]
    alpha: Float[Tensor, "B K h w"]


@torch.no_grad()
def render_candidates(
    decomposer: Decomposer, prediction: Prediction, noise: Float[Tensor, "K H W"] | None
) -> list[Candidates]:
    """Render the candidates of every layer, without gradients.

    Those that are chosen are rendered again with gradients. Layers are rendered one by one,
    because intermediate results are several times larger than the candidates.
    """
    batch, _, count, _ = prediction.sprite_params.shape
    sprites = decomposer.sprite_images().repeat(batch, 1, 1, 1)
    numbers = torch.arange(count, device=sprites.device).repeat(batch)
    layer_chain, sprite_chain = decomposer.layer_chain, decomposer.sprite_chain

    def render(sprite_params: Tensor, layer_params: Tensor) -> Candidates:
        of_sprite = sprite_params.flatten(0, 1)
        images = sprite_chain.change_pixels(sprites, of_sprite)
        images = layer_chain.change_pixels(images, layer_params.repeat_interleave(count, dim=0))
        warp = SpriteWarp.from_chains(layer_chain, layer_params, sprite_chain, of_sprite)
        windows, *shown = render_sprites(
            images, warp, decomposer.canvas, numbers, noise, premultiplied=True
        )
        return Candidates(windows, *(one.unflatten(0, (batch, count)) for one in shown))

    layers = prediction.sprite_params.unbind(1), prediction.layer_params.unbind(1)
    return [render(*params) for params in zip(*layers, strict=True)]

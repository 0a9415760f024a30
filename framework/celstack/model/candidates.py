"""Candidates: every sprite on every layer, rendered for selectors to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
from jaxtyping import Float
from torch import Tensor

from celstack.geometry.soft_bounds import softclip
from celstack.geometry.windows import Windows
from celstack.interfaces.predictor import Prediction
from celstack.model.sprite_warp import SpriteWarp, warp_sprites

if TYPE_CHECKING:
    from celstack.model.decomposer import Decomposer


@attrs.frozen(eq=False)
class Candidates:
    """All K sprites as they would appear on one layer of each of B images.

    They are transformed as predicted, with mask noise if there is any, and have no gradients.
    Each image has one window, a rectangle on its canvas that contains all of its candidates;
    outside it all are transparent. Within a layer all windows have the same size h x w; other
    layers have windows of other sizes. Candidate k of image b over a backdrop is
    ``paint[b, k] + (1 - alpha[b, k]) * backdrop`` inside the window, else the backdrop.

    For example, which sprite explains each image best, if no other layer shows anything::

        inside = candidates.windows.cut(images)[:, None]
        behind = candidates.windows.cut(backdrop)[:, None]
        shown = candidates.paint + (1 - candidates.alpha[:, :, None]) * behind
        error = (inside - shown).square().sum((2, 3, 4))
        best = error.argmin(1)

    What is outside the window has the same error for all candidates of an image, so that it
    need not be computed to compare them.
    """

    windows: Windows
    """The window of each image, B of them."""
    paint: Float[Tensor, "B K C h w"]
    """Color times alpha (premultiplied), in the windows."""
    alpha: Float[Tensor, "B K h w"]
    """Opacity, mostly in [0, 1]: soft clipping lets it exceed them a little."""


@torch.no_grad()
def render_candidates(
    decomposer: Decomposer, prediction: Prediction, noise: Float[Tensor, "K H W"] | None
) -> list[Candidates]:
    """Render the candidates of every layer, without gradients.

    Those that are chosen are rendered again with gradients. Layers are rendered one by one,
    because intermediate results are several times larger than the candidates.
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
    depth = images.shape[1]
    if not decomposer.sprite_chain.has_warp():
        # All sprites of a layer are warped in the same way: warp them as channels.
        images = images.view(batch, -1, *images.shape[2:])
    if noise is not None:
        images = torch.cat([images, torch.ones_like(images[:, :1])], dim=1)
    warp = SpriteWarp.from_chains(
        decomposer.layer_chain, of_layer, decomposer.sprite_chain, of_sprite
    )
    windows, found = warp_sprites(images, warp, decomposer.canvas)
    area = None
    if noise is not None:
        found, area = found[:, :-1], found[:, -1]
    found = found.reshape(batch, count, depth, windows.height, windows.width)
    alpha = found[:, :, -1]
    if noise is not None and area is not None:
        speckle = windows.cut(noise.expand(batch, -1, -1, -1))
        area = area.view(batch, -1, windows.height, windows.width)
        alpha = torch.addcmul(alpha, area, speckle)
    alpha = softclip(alpha)
    return Candidates(windows, found[:, :, :-1] * alpha[:, :, None], alpha)

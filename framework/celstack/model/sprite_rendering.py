"""Render sprites: their colors and masks on canvases."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.soft_bounds import softclip
from celstack.geometry.windows import Windows
from celstack.model.numba_jit import supports
from celstack.model.sprite_warp import SpriteWarp, locate_sprites, warp_sprites
from celstack.scene import EMPTY


def render_sprites(
    images: Float[Tensor, "n D h w"],
    warp: SpriteWarp,
    canvas: tuple[int, int],
    sprite: Int[Tensor, " n"],
    noise: Float[Tensor, "K H W"] | None,
    premultiplied: bool = False,
) -> tuple[Windows, Float[Tensor, "n C v u"], Float[Tensor, "n v u"]]:
    """Warp sprites onto canvases, add noise to their masks and clip these softly.

    Args:
        images: The sprites, color then alpha; those of a canvas follow one another.
        warp: The maps from canvases to sprites; successive sprites may share one.
        canvas: Height and width of the canvases.
        sprite: The number of each sprite, which selects its noise; EMPTY is transparent.
        noise: Added to masks where the sprite is; None for no noise.
        premultiplied: Return colors times alpha. Without gradients.

    Returns:
        A window on each canvas, and colors and masks in it. Sprites are transparent outside.
    """
    if not supports(images):
        return _render_by_operations(images, warp, canvas, sprite, noise, premultiplied)
    from celstack.model.sprite_rendering_cpu import Spritewise

    windows, maps = locate_sprites(warp, canvas, (images.shape[-2], images.shape[-1]), images)
    if noise is None:
        noise = images.new_zeros(int(sprite.max()) + 1, *canvas)
    shown: tuple[Tensor, Tensor] = Spritewise.apply(
        images, maps, sprite, noise, windows, premultiplied
    )
    return windows, *shown


def _render_by_operations(
    images: Tensor,
    warp: SpriteWarp,
    canvas: tuple[int, int],
    sprite: Tensor,
    noise: Tensor | None,
    premultiplied: bool,
) -> tuple[Windows, Tensor, Tensor]:
    """Render with torch operations, for accelerators and 16-bit floats."""
    if noise is not None:
        # Noise is added where the sprite is: a channel of ones is warped along with it.
        images = torch.cat([images, torch.ones_like(images[:, :1])], dim=1)
    windows, found = warp_sprites(images, warp, canvas)
    if noise is not None:
        times = len(images) // len(windows)
        own = windows.of([n // times for n in range(len(images))])
        speckle = own.cut(noise, sprite.clamp_min(0))
        found, area = found[:, :-1], found[:, -1]
        alpha = torch.addcmul(found[:, -1], area, speckle)
    else:
        alpha = found[:, -1]
    alpha = softclip(alpha) * (sprite != EMPTY).to(alpha.dtype)[:, None, None]
    colour = found[:, :-1]
    return windows, colour * alpha[:, None] if premultiplied else colour, alpha

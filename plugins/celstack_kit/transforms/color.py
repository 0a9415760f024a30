"""Color: change a sprite's colors, channel by channel."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Transform, hookimpl
from celstack.geometry.softclip import softclip


class Color(Transform):
    """Gain and offset per channel, softly clipped (paper, supplementary C.2).

    The parameters are the gains' distance from 1, then the offsets, each in the order of
    the channels. Alpha passes through.
    """

    num_params = 6

    def prepare(self, channels: int) -> None:
        """Take two parameters for each channel."""
        self.num_params = 2 * channels

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Scale and shift the colors."""
        gain, offset = params[:, :, None, None].chunk(2, dim=1)
        colors, alpha = images.split([images.shape[1] - 1, 1], dim=1)
        colors = softclip(torch.addcmul(offset, colors, 1 + gain))
        return torch.cat([colors, alpha], dim=1)

    def tint(
        self, gains: Float[Tensor, "n C"], offsets: Float[Tensor, "n C"] | None = None
    ) -> Float[Tensor, "n P"]:
        """Scale the colors, and shift them only if told to."""
        shifts = torch.zeros_like(gains) if offsets is None else offsets
        return torch.cat([gains - 1, shifts], dim=1)

    def browser(self) -> BrowserCode:
        """Read color.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Color]]:
    """Let recipes say ``use = "color"``."""
    return {"color": Color}

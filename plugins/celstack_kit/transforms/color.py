"""Color: scale and shift the color channels of a sprite."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Transform, hookimpl
from celstack.geometry import softclip


class Color(Transform):
    """Gain and offset per channel, softly clipped (paper, supplementary C.2).

    The parameters are the gains minus 1, then the offsets, each in the order of channels.
    Alpha is unchanged.
    """

    num_params = 6

    def prepare(self, channels: int, canvas: tuple[int, int] | None = None) -> None:  # noqa: ARG002
        """Use two parameters for each channel."""
        self.num_params = 2 * channels

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Apply gains and offsets to the colors."""
        gain, offset = params[:, :, None, None].chunk(2, dim=1)
        colors, alpha = images.split([images.shape[1] - 1, 1], dim=1)
        colors = softclip(torch.addcmul(offset, colors, 1 + gain))
        return torch.cat([colors, alpha], dim=1)

    def tint(
        self, gains: Float[Tensor, "n C"], offsets: Float[Tensor, "n C"] | None = None
    ) -> Float[Tensor, "n P"]:
        """Return the parameters of these gains and offsets; offsets default to 0."""
        shifts = torch.zeros_like(gains) if offsets is None else offsets
        return torch.cat([gains - 1, shifts], dim=1)

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, color.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Color]]:
    """Let recipes say ``use = "color"``."""
    return {"color": Color}

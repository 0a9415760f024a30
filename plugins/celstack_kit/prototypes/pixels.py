"""Pixels: images whose pixels are the parameters."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Prototype, hookimpl
from celstack.softclip import softclip


class Pixels(Prototype):
    """Learnable pixels, kept near [0, 1] by softclip (paper, Sec. 3.1 and supplementary C.3).

    Appearance starts at the constant ``appearance``, masks as a Gaussian of ``mask_sigma``
    pixels, plus noise of ``jitter`` on both so that no two images start alike. Without a
    size they are as large as the canvas.
    """

    def __init__(
        self,
        count: Annotated[int, Ge(1)],
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] | None = None,
        appearance: float = 0.9,
        mask_sigma: Annotated[float, Gt(0)] = 5.0,
        jitter: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__()
        self.count = count
        self.size = size
        self.appearance = appearance
        self.mask_sigma = mask_sigma
        self.jitter = jitter

    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Make the pixels."""
        channels, *canvas = sample.shape[1:]
        height, width = self.size or canvas
        colour = torch.full((self.count, channels, height, width), self.appearance)
        self.colour = nn.Parameter(colour + self.jitter * torch.randn_like(colour))
        self.mask: nn.Parameter | None = None
        if with_alpha:
            blob = _bell(height, self.mask_sigma)[:, None] * _bell(width, self.mask_sigma)
            mask = blob.expand(self.count, 1, -1, -1)
            self.mask = nn.Parameter(mask + self.jitter * torch.randn_like(mask))

    def images(self) -> Float[Tensor, "K D h w"]:
        """Return the pixels; only colours are clipped here."""
        alpha = torch.ones_like(self.colour[:, :1]) if self.mask is None else self.mask
        return torch.cat([softclip(self.colour), alpha], dim=1)

    def per_image(self) -> list[nn.Parameter]:
        """List colours and masks."""
        return [self.colour] if self.mask is None else [self.colour, self.mask]


def _bell(length: int, sigma: float) -> Float[Tensor, " length"]:
    distance = (torch.arange(length) - (length - 1) / 2) / sigma
    return torch.exp(-0.5 * distance.square())


@hookimpl
def celstack_prototypes() -> dict[str, type[Pixels]]:
    """Let recipes say ``use = "pixels"``."""
    return {"pixels": Pixels}

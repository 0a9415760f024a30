"""Generated: images that a small network decodes from learnable latent vectors."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Prototype, hookimpl
from celstack.geometry import softclip


class Generated(Prototype):
    """One latent vector per image, and one network that decodes all of them.

    The images share the network's parameters. Initial pixels are near 0.5, so masks are half
    transparent everywhere.
    """

    def __init__(
        self,
        count: Annotated[int, Ge(1)],
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] | None = None,
        latent: Annotated[int, Ge(1)] = 64,
        hidden: Annotated[int, Ge(1)] = 128,
    ) -> None:
        super().__init__()
        self.count = count
        self.size = size
        self.latent = latent
        self.hidden = hidden

    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Initialize latent vectors and network."""
        height, width = self.size or (sample.shape[2], sample.shape[3])
        self.shape = (sample.shape[1] + with_alpha, height, width)
        self.with_alpha = with_alpha
        self.latents = nn.Parameter(torch.randn(self.count, self.latent))
        self.network = nn.Sequential(
            nn.Linear(self.latent, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, self.shape[0] * height * width),
        )

    def images(self) -> Float[Tensor, "K D h w"]:
        """Decode all images: colors, softly clipped, and alpha, which is clipped later."""
        values = 0.5 + self.network(self.latents).view(self.count, *self.shape)
        if not self.with_alpha:
            return torch.cat([softclip(values), torch.ones_like(values[:, :1])], dim=1)
        return torch.cat([softclip(values[:, :-1]), values[:, -1:]], dim=1)

    def per_image(self) -> list[nn.Parameter]:
        """Return the latent vectors; the network is shared by all images."""
        return [self.latents]


@hookimpl
def celstack_prototypes() -> dict[str, type[Generated]]:
    """Let recipes say ``use = "generated"``."""
    return {"generated": Generated}

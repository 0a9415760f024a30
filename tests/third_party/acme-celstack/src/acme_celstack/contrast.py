"""Contrast: push colours away from grey, or towards it."""

import torch
from jaxtyping import Float
from torch import Tensor

from acme_celstack.paint import MIDDLE
from celstack import Transform, hookimpl


class Contrast(Transform):
    """One parameter, the logarithm of the contrast. Alpha passes through."""

    num_params = 1

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n 1"]
    ) -> Float[Tensor, "n D h w"]:
        """Scale the colours' distance from grey."""
        strength = params[:, :, None, None].exp()
        colours = MIDDLE + strength * (images[:, :-1] - MIDDLE)
        return torch.cat([colours, images[:, -1:]], dim=1)


@hookimpl
def celstack_transforms() -> dict[str, type[Contrast]]:
    """Let recipes say ``use = "acme_contrast"``."""
    return {"acme_contrast": Contrast}

"""Compositor: how layers are stacked."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.part import Part


class Compositor(Part):
    """Layers and an occlusion matrix to an image (paper, Eq. 1 and 2).

    Laws:
        With all layers transparent, the image is the backdrop.
        With one opaque layer alone, the image is that layer.
        The image is what is seen of each layer, and of the backdrop where no layer is.
        ``occlusion`` has a zero diagonal, and d_jl + d_lj = 1 off it.
    """

    layers: int
    """The number of layers L."""

    @property
    def num_logits(self) -> int:
        """Say how many numbers a predictor must give for the order of the layers."""
        return 0

    @abstractmethod
    def occlusion(self, logits: Float[Tensor, "B N"], training: bool) -> Float[Tensor, "B L L"]:
        """Return which layer hides which; binary when not training."""

    def compose(
        self,
        layers: Float[Tensor, "B L D H W"],
        backdrop: Float[Tensor, "B C H W"],
        occlusion: Float[Tensor, "B L L"],
    ) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B L H W"]]:
        """Return the image (Eq. 2), and what is seen of each layer's alpha.

        Layers hold colour, then alpha. The backdrop is hidden by all of them. A compositor
        may have a shorter way to the same result, for any occlusion, never another result:
        selectors rely on the image being affine in every single layer.
        """
        colour, alpha = layers[:, :, :-1], layers[:, :, -1]
        left, uncovered = torch.ones_like(alpha), torch.ones_like(alpha[:, 0])
        for front, hides in zip(alpha.unbind(1), occlusion.unbind(1), strict=True):
            left = left * (1 - hides[:, :, None, None] * front[:, None])
            uncovered = uncovered * (1 - front)
        visible = left * alpha
        image = (visible[:, :, None] * colour).sum(1) + uncovered[:, None] * backdrop
        return image, visible

"""Encoder: from an image to features."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part


class Encoder(Part, nn.Module):
    """Images to one vector of features each.

    Laws:
        After ``prepare``, ``num_features`` says how long the vectors are.
        An image's features depend on no other image when the encoder is in eval mode.
    """

    num_features: int

    @abstractmethod
    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Make the network for images of this shape (C, H, W)."""

    @abstractmethod
    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the features."""

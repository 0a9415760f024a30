"""Encoder: from an image to features."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part


class Encoder(Part, nn.Module):
    """A network that maps each image to a feature vector.

    Laws:
        After ``prepare``, ``num_features`` is the length F of the vectors.
        In eval mode, an image's features depend on no other image.
    """

    num_features: int
    """The length F of the feature vectors; known after ``prepare``."""

    @abstractmethod
    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Create the network for images of this shape (C, H, W)."""

    @abstractmethod
    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return a feature vector for each image."""

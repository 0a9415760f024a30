"""Prototype: the images that are learned."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part


class Prototype(Part, nn.Module):
    """A set of learnable images: sprites with alpha, or backgrounds.

    Laws:
        ``images()`` has ``count`` images, each with colours in or near [0, 1] and then
        alpha. The alpha of sprites is not clipped: rendering clips it after warping, when
        noise has been added. That of backgrounds is 1.
        Every parameter that ``per_image`` lists has the images along its first axis, and
        swapping its rows swaps the images.
        Where ``redraw`` can, the image then is as it was drawn, and the others are as before.
    """

    count: int
    sample_size: int = 100
    """How many images it would like to see before it begins."""

    @abstractmethod
    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Make the parameters for images like these, as sprites or as backgrounds."""

    @abstractmethod
    def images(self) -> Float[Tensor, "K D h w"]:
        """Return the images as they are now, with gradients."""

    @abstractmethod
    def per_image(self) -> list[nn.Parameter]:
        """List the parameters that belong to single images."""

    def redraw(self, index: int, image: Float[Tensor, "D h w"]) -> bool:  # noqa: ARG002
        """Make one of the images look like this; tell whether that can be done."""
        return False

"""Prototype: learnable images, used as sprites or as backgrounds."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part

NOISE_IMAGES = 100
"""How many images of noise `Prototype.allocate` prepares with, unless it is overridden."""


class Prototype(Part, nn.Module):
    """A set of learnable images: sprites with alpha, or backgrounds.

    Laws:
        ``images()`` returns ``count`` images, color channels in or near [0, 1] first, then
        alpha. The alpha of sprites is not clipped: rendering clips it after warping and
        after noise has been added. The alpha of backgrounds is 1.
        Gradients reach every parameter, but for those that are not to learn
        (``requires_grad=False``).
        Where ``size`` is not None, it is the height and width of ``images()``.
        ``allocate`` creates the same parameters as ``prepare``, with any values.
        ``count`` is a multiple of ``views``.
        Every parameter that ``per_image`` lists has the images along its first axis, and
        permuting its rows permutes the images.
        Where ``redraw`` returns True, that image is the given one and no other has changed.
    """

    needed = ("count",)

    count: int
    """The number of images K."""
    size: tuple[int, int] | None = None
    """Height and width of the images, if that is known before ``prepare``; None if they
    depend on the canvas. Recipes are checked with it before anything is trained."""
    views: int = 1
    """How many consecutive images show the same object, such as one that is turned. Images
    0 to ``views`` - 1 are one sprite in scores, and so on."""
    sample_size: int = 100
    """How many training images ``prepare`` should be given."""

    @abstractmethod
    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Create the parameters.

        Args:
            sample: Training images, for their shape and as a starting point.
            with_alpha: Whether the images are sprites; backgrounds are opaque.
        """

    def allocate(self, image_shape: tuple[int, int, int], with_alpha: bool) -> None:
        """Create the parameters, whose values are loaded next, as when a run is opened.

        By default, ``prepare`` is called with noise. Override this if that takes long.

        Args:
            image_shape: Channels, height and width of images.
            with_alpha: Whether the images are sprites; backgrounds are opaque.
        """
        self.prepare(torch.rand(NOISE_IMAGES, *image_shape), with_alpha)

    @abstractmethod
    def images(self) -> Float[Tensor, "K D h w"]:
        """Return the current images, color then alpha, with gradients."""

    @abstractmethod
    def per_image(self) -> list[nn.Parameter]:
        """List the parameters whose rows belong to single images."""

    def redraw(self, index: int, image: Float[Tensor, "D h w"]) -> bool:  # noqa: ARG002
        """Replace one of the images; return whether that is possible (False by default)."""
        return False

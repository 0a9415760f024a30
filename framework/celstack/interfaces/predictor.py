"""Predictor: from images to transform parameters."""

from __future__ import annotations

from abc import abstractmethod

import attrs
from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part


@attrs.frozen
class Outline:
    """The dimensions of a model: what a predictor has to predict."""

    image_shape: tuple[int, int, int]
    layers: int
    sprites: int
    backgrounds: int
    sprite_transforms: tuple[int, ...]
    """The number of parameters of each transform of sprites, in the order of their chain."""
    layer_transforms: tuple[int, ...]
    background_transforms: tuple[int, ...]
    occlusion_logits: int

    @property
    def sprite_params(self) -> int:
        """The number P of parameters of all transforms of a sprite."""
        return sum(self.sprite_transforms)

    @property
    def layer_params(self) -> int:
        """The number Q of parameters of all transforms of a layer."""
        return sum(self.layer_transforms)

    @property
    def background_params(self) -> int:
        """The number R of parameters of all transforms of a background."""
        return sum(self.background_transforms)


@attrs.frozen
class ActiveTransforms:
    """Which transforms of each chain are active, in the order of ``Outline``."""

    sprite: tuple[bool, ...]
    layer: tuple[bool, ...]
    background: tuple[bool, ...]


@attrs.frozen(eq=False)
class Prediction:
    """Transform parameters for every sprite on every layer, and logits of the layers' order.

    A selector uses those of the sprites that it chooses.
    """

    sprite_params: Float[Tensor, "B L K P"]
    layer_params: Float[Tensor, "B L Q"]
    background_params: Float[Tensor, "B M R"]
    occlusion_logits: Float[Tensor, "B N"]


class Predictor(Part, nn.Module):
    """A network that maps images to the parameters of all transforms and occlusion logits.

    Laws:
        Before the first training step all predictions are zero: the rest pose.
        In eval mode, an image's prediction depends on no other image.
        Weights that serve only inactive transforms (``activate``) have a gradient of None,
        not zero, because an optimizer with weight decay changes whatever has a gradient.
        ``per_sprite`` lists parameters with the axis that runs over sprites; permuting the
        sprites in all of them permutes their predictions.
    """

    @abstractmethod
    def prepare(self, outline: Outline) -> None:
        """Create the network for a model of these dimensions."""

    def activate(self, active: ActiveTransforms) -> None:
        """Take note of the transforms that are active from now on.

        Called after ``prepare``, at the start of every stage. What is predicted for inactive
        transforms is not used: a predictor with a network for each transform need not call
        those of inactive ones, and returns zeros for them.
        """

    @abstractmethod
    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Predict the parameters of all transforms."""

    @abstractmethod
    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the weights that belong to single sprites, each with its sprite axis."""

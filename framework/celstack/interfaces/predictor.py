"""Predictor: from an image to transform parameters."""

from __future__ import annotations

from abc import abstractmethod

import attrs
from jaxtyping import Float
from torch import Tensor, nn

from celstack.interfaces.part import Part


@attrs.frozen
class Outline:
    """The sizes of a model: what a predictor has to predict."""

    image_shape: tuple[int, int, int]
    layers: int
    sprites: int
    backgrounds: int
    sprite_transforms: tuple[int, ...]
    """How many parameters each transform of sprites has, in the order of their chain."""
    layer_transforms: tuple[int, ...]
    background_transforms: tuple[int, ...]
    occlusion_logits: int

    @property
    def sprite_params(self) -> int:
        """Count the parameters of all transforms of a sprite."""
        return sum(self.sprite_transforms)

    @property
    def layer_params(self) -> int:
        """Count the parameters of all transforms of a layer."""
        return sum(self.layer_transforms)

    @property
    def background_params(self) -> int:
        """Count the parameters of all transforms of a background."""
        return sum(self.background_transforms)


@attrs.frozen
class ActiveTransforms:
    """Which transforms of each chain are at work, in the order of ``Outline``."""

    sprite: tuple[bool, ...]
    layer: tuple[bool, ...]
    background: tuple[bool, ...]


@attrs.frozen(eq=False)
class Prediction:
    """Parameters for every layer and sprite, of which a selector will use some."""

    sprite_params: Float[Tensor, "B L K P"]
    layer_params: Float[Tensor, "B L Q"]
    background_params: Float[Tensor, "B M R"]
    occlusion_logits: Float[Tensor, "B N"]


class Predictor(Part, nn.Module):
    """Images to the parameters of all transforms, and the order of layers.

    Laws:
        Before the first training step all predictions are zero: the rest pose.
        An image's prediction depends on no other image in eval mode.
        Parameters that serve only transforms at rest (``activate``) get no gradient: none,
        not zero, because an optimizer with weight decay moves whatever has a gradient.
        Every parameter that ``per_sprite`` lists comes with the axis that runs over sprites;
        swapping sprites in all of them swaps their predictions.
    """

    @abstractmethod
    def prepare(self, outline: Outline) -> None:
        """Make the network for a model of these sizes."""

    def activate(self, active: ActiveTransforms) -> None:
        """Called at the start of a stage, after ``prepare``, with the transforms it uses.

        What is predicted for the others is not used. A predictor with networks of their own
        for transforms does not call those of transforms at rest, and returns zeros for them.
        """

    @abstractmethod
    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Predict."""

    @abstractmethod
    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the parameters that belong to single sprites, and their sprite axis."""

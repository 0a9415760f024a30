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
    sprite_params: int
    layer_params: int
    background_params: int
    occlusion_logits: int


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
        Every parameter that ``per_sprite`` lists comes with the axis that runs over sprites;
        swapping sprites in all of them swaps their predictions.
    """

    @abstractmethod
    def prepare(self, outline: Outline) -> None:
        """Make the network for a model of these sizes."""

    @abstractmethod
    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Predict."""

    @abstractmethod
    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the parameters that belong to single sprites, and their sprite axis."""

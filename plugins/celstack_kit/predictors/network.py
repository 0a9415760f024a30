"""Network: a shared encoder, and heads that predict all parameters."""

import itertools
import math
from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from celstack import Encoder, Outline, Prediction, Predictor, hookimpl


class Network(Predictor):
    """One encoder for everything, and a small network for every head (supplementary C.1).

    Each layer has a head for its own transforms and one for each sprite's; each background
    has one; the order of layers has one. A head has two hidden layers of ``hidden`` units;
    its last layer starts at zero, so that all transforms start in their rest pose.
    """

    def __init__(self, encoder: Encoder, hidden: Annotated[int, Ge(1)] = 128) -> None:
        super().__init__()
        self.encoder = encoder
        self.hidden = hidden

    def prepare(self, outline: Outline) -> None:
        """Make encoder and heads."""
        self.encoder.prepare(outline.image_shape)
        sizes = (self.encoder.num_features, self.hidden, self.hidden)
        layers, sprites = outline.layers, outline.sprites
        self.sprite_heads = Heads((layers, sprites), (*sizes, outline.sprite_params))
        self.layer_heads = Heads((layers,), (*sizes, outline.layer_params))
        self.background_heads = Heads(
            (outline.backgrounds,), (*sizes, outline.background_params)
        )
        self.occlusion_heads = Heads((), (*sizes, outline.occlusion_logits))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Encode once, predict everything."""
        # One image alone has no statistics: it is normalised with those gathered so far.
        self.encoder.train(self.training and len(images) > 1)
        features = self.encoder(images)
        return Prediction(
            self.sprite_heads(features),
            self.layer_heads(features),
            self.background_heads(features),
            self.occlusion_heads(features),
        )

    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the sprites' heads; layers come first in their shape."""
        return [(parameter, 1) for parameter in self.sprite_heads.parameters()]


class Heads(nn.Module):
    """Many networks of one shape, multiplied as one batch.

    ``groups`` is the shape in which they are laid out, before the axes of each network.
    """

    def __init__(self, groups: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.groups = groups
        self.outputs = sizes[-1]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        if not math.prod(groups) or not sizes[-1]:
            return
        for depth, (inputs, outputs) in enumerate(itertools.pairwise(sizes), start=1):
            # torch's own start for linear layers, and zero for the last.
            reach = 0.0 if depth == len(sizes) - 1 else 1 / math.sqrt(inputs)
            weight = torch.empty(*groups, outputs, inputs).uniform_(-reach, reach)
            self.weights.append(nn.Parameter(weight))
            bias = torch.empty(*groups, outputs).uniform_(-reach, reach)
            self.biases.append(nn.Parameter(bias))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B ..."]:
        """Predict with all networks."""
        count = math.prod(self.groups)
        if not self.weights:
            return features.new_zeros(len(features), *self.groups, self.outputs)
        # All see the same features: the first layers of all networks are one multiplication.
        first = linear(features, self.weights[0].flatten(0, -2), self.biases[0].flatten())
        values = first.unflatten(1, (count, -1)).movedim(1, 0)
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            flat = weight.reshape(count, *weight.shape[-2:])
            values = torch.baddbmm(bias.reshape(count, 1, -1), relu(values), flat.mT)
        return values.movedim(0, 1).reshape(len(features), *self.groups, self.outputs)


@hookimpl
def celstack_predictors() -> dict[str, type[Network]]:
    """Let recipes say ``use = "network"``."""
    return {"network": Network}

"""Network: a shared encoder, and heads that predict all parameters."""

import itertools
import math
from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from celstack import ActiveTransforms, Encoder, Outline, Prediction, Predictor, hookimpl

DEPTH = 3
"""A head is so many linear layers."""


class Network(Predictor):
    """One encoder for everything, and a small network for every head (supplementary C.1).

    Each transform of a layer has a head; so has each transform of each sprite on each layer,
    and of each background; the order of layers has one. A head has two hidden layers of
    ``hidden`` units; its last layer starts at zero, so that all transforms start in their
    rest pose. Heads of transforms at rest are not called.
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
        self.sprite_heads = ChainHeads((layers, sprites), sizes, outline.sprite_transforms)
        self.layer_heads = ChainHeads((layers,), sizes, outline.layer_transforms)
        self.background_heads = ChainHeads(
            (outline.backgrounds,), sizes, outline.background_transforms
        )
        self.occlusion_heads = Heads((), (*sizes, outline.occlusion_logits))

    def activate(self, active: ActiveTransforms) -> None:
        """Call only the heads of transforms at work."""
        self.sprite_heads.active = active.sprite
        self.layer_heads.active = active.layer
        self.background_heads.active = active.background

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

    def upgrade_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give each transform a copy of the head that 0.1.0 had for a whole chain."""
        chains = ("sprite_heads", "layer_heads", "background_heads")
        if not any(
            name.startswith(f"{chain}.weights.") for chain in chains for name in weights
        ):
            return weights
        upgraded: dict[str, Tensor] = {}
        for name, weight in weights.items():
            chain, _, rest = name.partition(".")
            old = chain in chains and rest.startswith(("weights.", "biases."))
            parts = getattr(self, chain).divide(rest, weight) if old else {rest: weight}
            upgraded |= {f"{chain}.{inner}": part for inner, part in parts.items()}
        return upgraded

    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the sprites' heads; layers come first in their shape."""
        return [(parameter, 1) for parameter in self.sprite_heads.parameters()]


class ChainHeads(nn.Module):
    """Heads for a chain of transforms: each transform has networks of its own.

    A transform that joins late then starts on hidden units that served no other.
    """

    def __init__(
        self, groups: tuple[int, ...], sizes: tuple[int, ...], outputs: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.groups = groups
        self.active = (True,) * len(outputs)
        self.heads = nn.ModuleList(Heads(groups, (*sizes, number)) for number in outputs)

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B ..."]:
        """Predict for the transforms at work, and return zeros for the others."""
        parts = [features.new_zeros(len(features), *self.groups, 0)]
        for heads, active in zip(self.heads, self.active, strict=True):
            assert isinstance(heads, Heads)
            parts.append(heads(features) if active else heads.rest(features))
        return torch.cat(parts, dim=-1)

    def divide(self, name: str, weight: Tensor) -> dict[str, Tensor]:
        """Divide a weight of one head for all transforms; hidden layers serve each of them.

        What does not have the shape of such a weight is returned as it is.
        """
        kind, _, depth = name.partition(".")
        heads = [head for head in self.heads if isinstance(head, Heads)]
        owners = {n: getattr(head, kind) for n, head in enumerate(heads) if head.weights}
        if weight.layout != torch.strided or depth not in map(str, range(DEPTH)) or not owners:
            return {name: weight}
        wanted = {n: own[int(depth)] for n, own in owners.items()}
        axis = -2 if kind == "weights" else -1
        if int(depth) == DEPTH - 1:
            sizes = [own.shape[axis] for own in wanted.values()]
            whole = (*weight.shape[:axis], sum(sizes), *weight.shape[weight.ndim + axis + 1 :])
            shares = weight.split(sizes, axis) if tuple(weight.shape) == whole else ()
        else:
            shares = (weight,) * len(wanted)
        if [w.shape for w in wanted.values()] != [share.shape for share in shares]:
            return {name: weight}
        pairs = zip(wanted, shares, strict=True)
        return {f"heads.{n}.{name}": share for n, share in pairs}


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
            return self.rest(features)
        # All see the same features: the first layers of all networks are one multiplication.
        first = linear(features, self.weights[0].flatten(0, -2), self.biases[0].flatten())
        values = first.unflatten(1, (count, -1)).movedim(1, 0)
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            flat = weight.reshape(count, *weight.shape[-2:])
            values = torch.baddbmm(bias.reshape(count, 1, -1), relu(values), flat.mT)
        return values.movedim(0, 1).reshape(len(features), *self.groups, self.outputs)

    def rest(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B ..."]:
        """Return zeros, the rest pose, without calling the networks."""
        return features.new_zeros(len(features), *self.groups, self.outputs)


@hookimpl
def celstack_predictors() -> dict[str, type[Network]]:
    """Let recipes say ``use = "network"``."""
    return {"network": Network}

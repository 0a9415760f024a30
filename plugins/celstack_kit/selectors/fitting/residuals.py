"""Views: how sprites are compared with images while they are being moved.

Convention: sprites are held against images in a lattice of a rows and b columns, which is
all sprites for each image, or the one sprite of each. Sums over points have weights whose
squares add up to 1, so that they are means.
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack.geometry.sampling import look_up
from celstack.geometry.softclip import SLOPE, softclip

FIXED = 1e6
"""What costs so much stays as it is."""
LEAST = 1e-6
"""Where nothing is to be seen, no color is better than another: all cost at least this."""


class Look(NamedTuple):
    """What is seen of sprites from somewhere, in the best colors, and what it misses.

    What is seen is a mixture of ``features``; ``tints`` says how much of each, and ``gram`` has
    the products of features, with what it costs to tint on its diagonal. ``across`` and
    ``down`` say how it changes when sprites are looked at further to the right, or below.
    """

    error: Float[Tensor, "a b"]
    misses: Float[Tensor, "a b C m"]
    features: Float[Tensor, "a b C q m"]
    gram: Float[Tensor, "a b C q q"]
    tints: Float[Tensor, "a b C q"]
    across: Float[Tensor, "a b C m"]
    down: Float[Tensor, "a b C m"]
    background: Int[Tensor, "a b"]


class View(ABC):
    """Looks at sprites from poses, and compares what it sees with images."""

    outside: Literal["zeros", "border"]
    costs: Float[Tensor, " q"]
    """What it costs to change each tint by 1."""

    def __init__(
        self,
        sprites: Float[Tensor, "b D h w"],
        target: Float[Tensor, "*a_or_b C m"],
        weights: Float[Tensor, " m"],
        inverts: bool,
    ) -> None:
        self.sprites = _with_slopes(sprites, self.outside)
        self.weights, self.inverts = weights, inverts
        self.channels = target.shape[-2]
        self.target = target * weights

    @abstractmethod
    def look(
        self, pulled: Float[Tensor, "a b m 2"], background: Int[Tensor, "a b"] | None = None
    ) -> Look:
        """Return what the points see, each in the sprite of its column.

        Where a ``background`` is given, no other is tried.
        """

    def _find(self, pulled: Float[Tensor, "a b m 2"]) -> tuple[Tensor, Tensor, Tensor]:
        """Look sprites up, and how they change across and down: (a, b, D, m) each."""
        rows, columns, points, _ = pulled.shape
        found = look_up(self.sprites, pulled.transpose(0, 1).flatten(1, 2), self.outside)
        depth = self.sprites.shape[1]
        found = found.view(columns, depth, rows, points).permute(2, 0, 1, 3)
        itself, across, down = found.chunk(3, dim=2)
        return itself, across, down

    def _tint(
        self,
        features: Float[Tensor, "a b C q m"],
        rest: Float[Tensor, "*any q"],
    ) -> tuple[
        Float[Tensor, "a b C q q"],
        Float[Tensor, "a b C q"],
        Float[Tensor, "a b C m"],
        Float[Tensor, "a b"],
    ]:
        """Mix features to fit best; return their gram, how, what is missed, and the error."""
        costs = self.costs
        count = len(costs)
        target = self.target[..., None, :].expand(*features.shape[:3], 1, -1)
        products = features @ torch.cat([features, target], dim=3).mT
        plain, match = products[..., :count], products[..., count]
        gram = plain + torch.diag(costs)
        tints = torch.linalg.solve(gram, match + costs * rest)
        if not self.inverts:
            # A channel that would have to be a negative does without contrast.
            flat = (tints[..., 0] < 0)[..., None] & (costs[0] < FIXED)
            first = torch.arange(len(costs), device=costs.device) == 0
            own = torch.where(flat & first, FIXED, costs)
            still = torch.where(flat & first, 0.0, rest)
            tints = torch.linalg.solve(plain + torch.diag_embed(own), match + own * still)
            rest = still
        misses = self.target - (tints[..., None, :] @ features)[..., 0, :]
        cheap = torch.where(costs < FIXED, costs, 0.0)
        extra = (cheap * (tints - rest).square()).sum((2, 3))
        error = (misses.square().sum((2, 3)) + extra) / self.channels
        return gram, tints, misses, error


class Window(View):
    """Compare sprites and images through a window, whatever the masks of sprites are."""

    outside = "border"

    def __init__(
        self,
        sprites: Float[Tensor, "b D h w"],
        target: Float[Tensor, "*a_or_b C m"],
        weights: Float[Tensor, " m"],
        inverts: bool,
        tint_cost: float,
    ) -> None:
        super().__init__(sprites[:, :-1], target, weights, inverts)
        self.costs = weights.new_full((2,), max(tint_cost, LEAST))

    def look(
        self,
        pulled: Float[Tensor, "a b m 2"],
        background: Int[Tensor, "a b"] | None = None,  # noqa: ARG002
    ) -> Look:
        """Look at colors alone."""
        color, across, down = self._find(pulled)
        features = torch.stack([color, torch.ones_like(color)], dim=3) * self.weights
        rest = self.weights.new_tensor([1.0, 0.0])
        gram, tints, misses, error = self._tint(features, rest)
        gain = tints[..., :1] * self.weights
        none = torch.zeros_like(error, dtype=torch.int64)
        return Look(error, misses, features, gram, tints, gain * across, gain * down, none)


class Composite(View):
    """Compare images with sprites on the background that then fits best, in its best colors.

    ``given`` are tints of sprites that stay as they are.
    """

    outside = "zeros"

    def __init__(
        self,
        sprites: Float[Tensor, "b D h w"],
        target: Float[Tensor, "*a_or_b C m"],
        backdrops: Float[Tensor, "M C m"],
        inverts: bool,
        costs: tuple[float, float],
        given: Float[Tensor, "b C 2"] | None = None,
    ) -> None:
        points = target.shape[-1]
        super().__init__(sprites, target, target.new_full((points,), points**-0.5), inverts)
        self.backdrops = backdrops
        sprite, background = costs if given is None else (FIXED, costs[1])
        both = target.new_tensor([sprite, sprite, background, background])
        self.costs = both.clamp_min(LEAST)
        plain = target.new_tensor([1.0, 0.0])
        own = plain.expand(len(sprites), self.channels, 2) if given is None else given
        self.rest = torch.cat([own, plain.expand_as(own)], dim=2)

    def look(
        self, pulled: Float[Tensor, "a b m 2"], background: Int[Tensor, "a b"] | None = None
    ) -> Look:
        """Try every background, unless told which, and keep the best for each sprite."""
        itself, across, down = self._find(pulled)
        color, mask = itself[:, :, :-1], softclip(itself[:, :, -1:])
        if background is None and len(self.backdrops) == 1:
            background = torch.zeros(pulled.shape[:2], dtype=torch.int64, device=pulled.device)
        if background is None:
            tried = (self._features(color, mask, behind) for behind in self.backdrops)
            looks = [(features, *self._tint(features, self.rest)) for features in tried]
            stacked = [torch.stack(one) for one in zip(*looks, strict=True)]
            background = stacked[-1].argmin(0)
            features, gram, tints, misses, error = (_pick(one, background) for one in stacked)
        else:
            features = self._features(color, mask, self.backdrops[background])
            gram, tints, misses, error = self._tint(features, self.rest)
        sprite, offset, behind, beyond = tints[..., None].unbind(3)
        steep = torch.where((itself[:, :, -1:] - 0.5).abs() < 0.5, 1.0, SLOPE)
        gap = (sprite * color + offset - behind * self.backdrops[background] - beyond) * steep
        paint = sprite * mask
        across, down = (
            (gap * way[:, :, -1:] + paint * way[:, :, :-1]) * self.weights
            for way in (across, down)
        )
        return Look(error, misses, features, gram, tints, across, down, background)

    def _features(
        self,
        color: Float[Tensor, "a b C m"],
        mask: Float[Tensor, "a b 1 m"],
        behind: Float[Tensor, "*any C m"],
    ) -> Float[Tensor, "a b C 4 m"]:
        left = 1 - mask
        parts = torch.broadcast_tensors(mask * color, mask, left * behind, left)
        return torch.stack(parts, dim=3) * self.weights


def _pick(values: Float[Tensor, "M a b *rest"], best: Int[Tensor, "a b"]) -> Tensor:
    rows = torch.arange(best.shape[0], device=best.device)[:, None]
    columns = torch.arange(best.shape[1], device=best.device)
    return values[best, rows, columns]


def _with_slopes(
    sprites: Float[Tensor, "b D h w"], outside: Literal["zeros", "border"]
) -> Float[Tensor, "b D*3 h w"]:
    """Add how sprites change across and down, for points in half sprites."""
    height, width = sprites.shape[2:]
    framed = pad(sprites, (1, 1, 1, 1), mode="constant" if outside == "zeros" else "replicate")
    half = max(height, width) / 2
    across = (framed[:, :, 1:-1, 2:] - framed[:, :, 1:-1, :-2]) * (half / 2)
    down = (framed[:, :, 2:, 1:-1] - framed[:, :, :-2, 1:-1]) * (half / 2)
    return torch.cat([sprites, across, down], dim=1)

"""Residuals between images and warped sprites, with least-squares colors.

Convention: pairs of an image and a sprite form a lattice of a rows and b columns: all sprites
for each image, or one sprite per image. Values at points are multiplied by weights whose
squares sum to 1, so that sums of squares are weighted means.
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack.geometry import SOFTCLIP_SLOPE, sample_points, softclip

FIXED_COST = 1e6
"""Tint cost that keeps a tint at its rest value."""
MIN_TINT_COST = 1e-6
"""Keeps the normal equations regular where a sprite is invisible."""


class Residuals(NamedTuple):
    """Residuals of images and sprites at some poses, with the best tints.

    The model of a channel is a linear combination of q ``features`` with coefficients
    ``tints``; ``values`` are image minus model, and ``error`` is their mean square plus the
    cost of tinting. ``gram`` is the Gram matrix of the features, plus tint costs on its
    diagonal. ``across`` and ``down`` are the model's derivatives by x and y of the sprite
    points. ``background`` is the index of the background with the lowest error.
    """

    error: Float[Tensor, "a b"]
    values: Float[Tensor, "a b C m"]
    features: Float[Tensor, "a b C q m"]
    gram: Float[Tensor, "a b C q q"]
    tints: Float[Tensor, "a b C q"]
    across: Float[Tensor, "a b C m"]
    down: Float[Tensor, "a b C m"]
    background: Int[Tensor, "a b"]


class ResidualModel(ABC):
    """Samples sprites at warped points, and compares them with images.

    Args:
        sprites: The sprites, one per column.
        target: The images at the points, one per row or column.
        weights: Weights of the points, whose squares sum to 1.
        inverts: Whether color gains may be negative.
    """

    outside: Literal["zeros", "border"]
    costs: Float[Tensor, " q"]
    """Cost of changing each tint by 1 from its rest value, by squares."""

    def __init__(
        self,
        sprites: Float[Tensor, "b D h w"],
        target: Float[Tensor, "*a_or_b C m"],
        weights: Float[Tensor, " m"],
        inverts: bool,
    ) -> None:
        self.sprites = _with_derivatives(sprites, self.outside)
        self.weights, self.inverts = weights, inverts
        self.channels = target.shape[-2]
        self.target = target * weights

    @abstractmethod
    def residuals(
        self, pulled: Float[Tensor, "a b m 2"], background: Int[Tensor, "a b"] | None = None
    ) -> Residuals:
        """Return the residuals for sprite points, each in the sprite of its column.

        If ``background`` is given, it is used; otherwise the best one is.
        """

    def _sample(self, pulled: Float[Tensor, "a b m 2"]) -> tuple[Tensor, Tensor, Tensor]:
        """Sample sprites and their derivatives by x and y: (a, b, D, m) each."""
        rows, columns, points, _ = pulled.shape
        sampled = sample_points(
            self.sprites, pulled.transpose(0, 1).flatten(1, 2), self.outside
        )
        depth = self.sprites.shape[1]
        sampled = sampled.view(columns, depth, rows, points).permute(2, 0, 1, 3)
        itself, across, down = sampled.chunk(3, dim=2)
        return itself, across, down

    def _solve_tints(
        self,
        features: Float[Tensor, "a b C q m"],
        rest: Float[Tensor, "*any q"],
    ) -> tuple[
        Float[Tensor, "a b C q q"],
        Float[Tensor, "a b C q"],
        Float[Tensor, "a b C m"],
        Float[Tensor, "a b"],
    ]:
        """Solve for the least-squares tints; return Gram matrix, tints, residuals, error."""
        costs = self.costs
        count = len(costs)
        target = self.target[..., None, :].expand(*features.shape[:3], 1, -1)
        products = features @ torch.cat([features, target], dim=3).mT
        plain, match = products[..., :count], products[..., count]
        gram = plain + torch.diag(costs)
        tints = torch.linalg.solve(gram, match + costs * rest)
        if not self.inverts:
            # Where a channel's gain would be negative, solve again with the gain fixed at 0.
            flat = (tints[..., 0] < 0)[..., None] & (costs[0] < FIXED_COST)
            first = torch.arange(len(costs), device=costs.device) == 0
            own = torch.where(flat & first, FIXED_COST, costs)
            still = torch.where(flat & first, 0.0, rest)
            tints = torch.linalg.solve(plain + torch.diag_embed(own), match + own * still)
            rest = still
        values = self.target - (tints[..., None, :] @ features)[..., 0, :]
        cheap = torch.where(costs < FIXED_COST, costs, 0.0)
        extra = (cheap * (tints - rest).square()).sum((2, 3))
        error = (values.square().sum((2, 3)) + extra) / self.channels
        return gram, tints, values, error


class WindowResiduals(ResidualModel):
    """Residuals of sprite colors and images in a weighted window; masks are ignored."""

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
        self.costs = weights.new_full((2,), max(tint_cost, MIN_TINT_COST))

    def residuals(
        self,
        pulled: Float[Tensor, "a b m 2"],
        background: Int[Tensor, "a b"] | None = None,  # noqa: ARG002
    ) -> Residuals:
        """Compare colors; the features of a channel are the color and a constant."""
        color, across, down = self._sample(pulled)
        features = torch.stack([color, torch.ones_like(color)], dim=3) * self.weights
        rest = self.weights.new_tensor([1.0, 0.0])
        gram, tints, values, error = self._solve_tints(features, rest)
        gain = tints[..., :1] * self.weights
        none = torch.zeros_like(error, dtype=torch.int64)
        return Residuals(error, values, features, gram, tints, gain * across, gain * down, none)


class CompositeResiduals(ResidualModel):
    """Residuals of images and sprites composited over the best background.

    The features of a channel are the masked sprite, its mask, the visible background and the
    background's visibility.

    Args:
        sprites: The sprites, one per column.
        target: The images, one per row or column.
        backdrops: The backgrounds.
        inverts: Whether color gains may be negative.
        costs: Costs of tinting sprites, and backgrounds.
        given: Tints of the sprites that are kept.
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
        sprite, background = costs if given is None else (FIXED_COST, costs[1])
        both = target.new_tensor([sprite, sprite, background, background])
        self.costs = both.clamp_min(MIN_TINT_COST)
        plain = target.new_tensor([1.0, 0.0])
        own = plain.expand(len(sprites), self.channels, 2) if given is None else given
        self.rest = torch.cat([own, plain.expand_as(own)], dim=2)

    def residuals(
        self, pulled: Float[Tensor, "a b m 2"], background: Int[Tensor, "a b"] | None = None
    ) -> Residuals:
        """Compare composites over all backgrounds and keep the best, or use the given ones."""
        itself, across, down = self._sample(pulled)
        color, mask = itself[:, :, :-1], softclip(itself[:, :, -1:])
        if background is None and len(self.backdrops) == 1:
            background = torch.zeros(pulled.shape[:2], dtype=torch.int64, device=pulled.device)
        if background is None:
            tried = (self._features(color, mask, behind) for behind in self.backdrops)
            solved = [(features, *self._solve_tints(features, self.rest)) for features in tried]
            stacked = [torch.stack(one) for one in zip(*solved, strict=True)]
            background = stacked[-1].argmin(0)
            features, gram, tints, values, error = (_pick(one, background) for one in stacked)
        else:
            features = self._features(color, mask, self.backdrops[background])
            gram, tints, values, error = self._solve_tints(features, self.rest)
        sprite, offset, behind, beyond = tints[..., None].unbind(3)
        steep = torch.where((itself[:, :, -1:] - 0.5).abs() < 0.5, 1.0, SOFTCLIP_SLOPE)
        gap = (sprite * color + offset - behind * self.backdrops[background] - beyond) * steep
        paint = sprite * mask
        across, down = (
            (gap * way[:, :, -1:] + paint * way[:, :, :-1]) * self.weights
            for way in (across, down)
        )
        return Residuals(error, values, features, gram, tints, across, down, background)

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
    """Select the best of M alternatives for each pair."""
    rows = torch.arange(best.shape[0], device=best.device)[:, None]
    columns = torch.arange(best.shape[1], device=best.device)
    return values[best, rows, columns]


def _with_derivatives(
    sprites: Float[Tensor, "b D h w"], outside: Literal["zeros", "border"]
) -> Float[Tensor, "b D*3 h w"]:
    """Append the derivatives of sprites by x and y, in units of half sprites."""
    height, width = sprites.shape[2:]
    framed = pad(sprites, (1, 1, 1, 1), mode="constant" if outside == "zeros" else "replicate")
    half = max(height, width) / 2
    across = (framed[:, :, 1:-1, 2:] - framed[:, :, 1:-1, :-2]) * (half / 2)
    down = (framed[:, :, 2:, 1:-1] - framed[:, :, :-2, 1:-1]) * (half / 2)
    return torch.cat([sprites, across, down], dim=1)

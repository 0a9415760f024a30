"""Approach: follow Gauss and Newton from the rest pose to where sprites fit best."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack_kit.selectors.fitting.pose_space import Outlook, Poses
from celstack_kit.selectors.fitting.residuals import Look, View

DAMPING = 0.1
FARTHEST = 0.15
"""How far parameters may go at a time."""
FAINT = 1e-4
"""Images of less variance count as if they had that much."""
LEAST = 1e-8


class Costs(NamedTuple):
    """What it costs to look elsewhere, as shares of an image's variance (``Fitting``)."""

    move: float
    bend: float


class Fitted(NamedTuple):
    """The best poses that were found, and what is seen from there (``views.Look``)."""

    cost: Float[Tensor, "a b"]
    pose: Float[Tensor, "a b p"]
    tints: Float[Tensor, "a b C q"]
    background: Int[Tensor, "a b"]


def approach(
    view: View, poses: Poses, points: Float[Tensor, "m 2"], steps: int, costs: Costs
) -> Fitted:
    """Move all sprites of a view for so many steps; return the best that each came to.

    Colors follow in closed form, and steps know that they will (variable projection).
    """
    rows, columns = len(view.target), len(view.sprites)
    shape = torch.broadcast_shapes((rows, columns), view.target.shape[:2])
    pose = view.target.new_zeros(*shape, poses.count)
    outlook = Outlook(poses, points)
    price, toll = _variance(view), _Toll(points, view.weights, costs)
    best: Fitted | None = None
    steps = steps if poses.count else 0
    for step in range(steps + 1):
        flat = pose.flatten(0, 1)
        pulled = outlook.look(flat)
        # Backgrounds are compared at the beginning and at the end.
        known = best.background if best is not None and step < steps else None
        look = view.look(pulled.unflatten(0, shape), known)
        away = toll.of((pulled - outlook.rest).mT.unflatten(0, shape))
        cost = look.error + price * away.square().sum((2, 3))
        found = Fitted(cost, pose, look.tints, look.background)
        best = found if best is None else _better(best, found)
        if step < steps:
            slopes = outlook.slopes(flat)
            slopes = slopes.view(*(shape if len(slopes) > 1 else (1, 1)), *slopes.shape[1:])
            pose = pose + _step(look, slopes, away, toll, price)
    assert best is not None  # there is at least the rest pose
    return best


def _step(
    look: Look,
    slopes: Float[Tensor, "a_or_1 b_or_1 2 p m"],
    away: Float[Tensor, "a b 2 q"],
    toll: "_Toll",
    price: Float[Tensor, "*a_or_b"],
) -> Float[Tensor, "a b p"]:
    """Return how far to go: less error, but not too far away.

    Colors will be as good as they can be, wherever that is: what they would make up for is
    no slope (the Schur complement of their part of the normal equations).
    """
    across, down = slopes[:, :, None].unbind(3)
    seen = torch.addcmul(look.across[..., None, :] * across, look.down[..., None, :], down)
    rows = torch.cat([seen, look.features, look.misses[..., None, :]], dim=3)
    count, mixed = seen.shape[3], look.features.shape[3]
    curve, shared, pull = (seen @ rows.mT).split([count, mixed, 1], dim=4)
    curve = (curve - shared @ torch.linalg.solve(look.gram, shared.mT)).mean(2)
    moved = toll.of(slopes).transpose(2, 3).flatten(3)
    cost = price[..., None, None]
    curve = curve + cost * (moved @ moved.mT)
    pull = pull.mean(2) - cost * (moved @ away.flatten(2)[..., None])
    stiff = torch.diag_embed(DAMPING * curve.diagonal(dim1=2, dim2=3) + LEAST)
    return torch.linalg.solve(curve + stiff, pull)[..., 0].clamp(-FARTHEST, FARTHEST)


class _Toll:
    """Weighs how far points have moved, so that the squares add up to what it costs."""

    def __init__(
        self, points: Float[Tensor, "m 2"], weights: Float[Tensor, " m"], costs: Costs
    ) -> None:
        self.weights, self.move, self.bend = weights, costs.move**0.5, costs.bend**0.5
        plane = torch.cat([points, torch.ones_like(points[:, :1])], dim=1)
        self.plane = torch.linalg.qr(plane * weights[:, None]).Q

    def of(self, moves: Float[Tensor, "*any m"]) -> Float[Tensor, "*any q"]:
        """Weigh all of a move; and, where bending costs more, what no plain map could do."""
        moves = moves * self.weights
        if not self.bend:
            return self.move * moves
        bent = moves - (moves @ self.plane) @ self.plane.mT
        return torch.cat([self.move * moves, self.bend * bent], dim=-1)


def _variance(view: View) -> Float[Tensor, "*a_or_b"]:
    """Return the variance of images, as far as they are looked at."""
    mean = (view.target * view.weights).sum(-1, keepdim=True)
    spread = (view.target - mean * view.weights).square().sum(-1).mean(-1)
    return spread.clamp_min(FAINT)


def _better(one: Fitted, other: Fitted) -> Fitted:
    lower = other.cost < one.cost
    pairs = zip(one, other, strict=True)
    fields = [
        torch.where(lower.view(*lower.shape, *[1] * (a.ndim - 2)), b, a) for a, b in pairs
    ]
    return Fitted(*fields)

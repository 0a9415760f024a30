"""Gauss-Newton optimization of poses, with colors eliminated (variable projection)."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack_kit.selectors.fitting.pose_space import PointWarp, PoseSpace
from celstack_kit.selectors.fitting.residuals import ResidualModel, Residuals

DAMPING = 0.1
MAX_STEP = 0.15
"""Maximum change of a parameter in one iteration."""
MIN_VARIANCE = 1e-4
"""Lower bound of an image's variance, by which costs are scaled."""
MIN_CURVATURE = 1e-8


class MotionCosts(NamedTuple):
    """Costs of moving and of bending, as shares of an image's variance (``Fitting``)."""

    move: float
    bend: float


class FittedPoses(NamedTuple):
    """The best poses found, with their tints and backgrounds (``Residuals``)."""

    cost: Float[Tensor, "a b"]
    pose: Float[Tensor, "a b p"]
    tints: Float[Tensor, "a b C q"]
    background: Int[Tensor, "a b"]


def gauss_newton(
    model: ResidualModel,
    space: PoseSpace,
    points: Float[Tensor, "m 2"],
    steps: int,
    costs: MotionCosts,
) -> FittedPoses:
    """Minimize squared error plus motion cost over poses, from the rest pose.

    Colors are the least-squares solution at each pose, and steps take that into account
    (variable projection).

    Args:
        model: Computes residuals of sprites and images.
        space: The parameters to optimize.
        points: Canvas points at which sprites and images are compared.
        steps: Number of Gauss-Newton iterations.
        costs: Costs of moving points away from where they are at rest.

    Returns:
        The best pose of each pair of image and sprite among all iterations.
    """
    rows, columns = len(model.target), len(model.sprites)
    shape = torch.broadcast_shapes((rows, columns), model.target.shape[:2])
    pose = model.target.new_zeros(*shape, space.count)
    warp = PointWarp(space, points)
    price, penalty = _variance(model), _MotionPenalty(points, model.weights, costs)
    best: FittedPoses | None = None
    steps = steps if space.count else 0
    for step in range(steps + 1):
        flat = pose.flatten(0, 1)
        pulled = warp.pull(flat)
        # All backgrounds are compared in the first and the last iteration only.
        background = best.background if best is not None and step < steps else None
        residuals = model.residuals(pulled.unflatten(0, shape), background)
        motion = penalty.weigh((pulled - warp.rest).mT.unflatten(0, shape))
        cost = residuals.error + price * motion.square().sum((2, 3))
        found = FittedPoses(cost, pose, residuals.tints, residuals.background)
        best = found if best is None else _keep_better(best, found)
        if step < steps:
            jacobian = warp.jacobian(flat)
            lattice = shape if len(jacobian) > 1 else (1, 1)
            jacobian = jacobian.view(*lattice, *jacobian.shape[1:])
            pose = pose + _step(residuals, jacobian, motion, penalty, price)
    assert best is not None  # there is at least the rest pose
    return best


def _step(
    residuals: Residuals,
    jacobian: Float[Tensor, "a_or_1 b_or_1 2 p m"],
    motion: Float[Tensor, "a b 2 q"],
    penalty: "_MotionPenalty",
    price: Float[Tensor, "*a_or_b"],
) -> Float[Tensor, "a b p"]:
    """Return the damped Gauss-Newton step.

    Tints are eliminated from the normal equations by a Schur complement, since they are
    optimal again after the step.
    """
    across, down = jacobian[:, :, None].unbind(3)
    shown = residuals.across[..., None, :] * across
    shown = torch.addcmul(shown, residuals.down[..., None, :], down)
    rows = torch.cat([shown, residuals.features, residuals.values[..., None, :]], dim=3)
    count, mixed = shown.shape[3], residuals.features.shape[3]
    hessian, shared, gradient = (shown @ rows.mT).split([count, mixed, 1], dim=4)
    hessian = (hessian - shared @ torch.linalg.solve(residuals.gram, shared.mT)).mean(2)
    moved = penalty.weigh(jacobian).transpose(2, 3).flatten(3)
    cost = price[..., None, None]
    hessian = hessian + cost * (moved @ moved.mT)
    gradient = gradient.mean(2) - cost * (moved @ motion.flatten(2)[..., None])
    ridge = torch.diag_embed(DAMPING * hessian.diagonal(dim1=2, dim2=3) + MIN_CURVATURE)
    return torch.linalg.solve(hessian + ridge, gradient)[..., 0].clamp(-MAX_STEP, MAX_STEP)


class _MotionPenalty:
    """Weighs displacements of points such that their squares sum to the motion cost."""

    def __init__(
        self, points: Float[Tensor, "m 2"], weights: Float[Tensor, " m"], costs: MotionCosts
    ) -> None:
        self.weights, self.move, self.bend = weights, costs.move**0.5, costs.bend**0.5
        affine = torch.cat([points, torch.ones_like(points[:, :1])], dim=1)
        self.affine_basis = torch.linalg.qr(affine * weights[:, None]).Q

    def weigh(self, moves: Float[Tensor, "*any m"]) -> Float[Tensor, "*any q"]:
        """Return weighted displacements and, if bending costs, their non-affine part."""
        moves = moves * self.weights
        if not self.bend:
            return self.move * moves
        bent = moves - (moves @ self.affine_basis) @ self.affine_basis.mT
        return torch.cat([self.move * moves, self.bend * bent], dim=-1)


def _variance(model: ResidualModel) -> Float[Tensor, "*a_or_b"]:
    """Return the weighted variance of each image, averaged over channels."""
    mean = (model.target * model.weights).sum(-1, keepdim=True)
    variance = (model.target - mean * model.weights).square().sum(-1).mean(-1)
    return variance.clamp_min(MIN_VARIANCE)


def _keep_better(one: FittedPoses, other: FittedPoses) -> FittedPoses:
    lower = other.cost < one.cost
    pairs = zip(one, other, strict=True)
    fields = [
        torch.where(lower.view(*lower.shape, *[1] * (a.ndim - 2)), b, a) for a, b in pairs
    ]
    return FittedPoses(*fields)

"""Refine poses by damped Gauss-Newton steps at full resolution."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry import sample_points, softclip
from celstack_kit.selectors.matching.placement import inverse_linear
from celstack_kit.selectors.matching.templates import MIN_ENERGY, LayerContext

DIFFERENCE_STEP = (0.5, 0.5, 0.04, 0.06, 0.04, 0.06)
"""Steps of the finite differences that approximate the Jacobian: the dimensions of poses."""
MAX_STEP = (2.0, 2.0, 0.15, 0.25, 0.1, 0.15)
"""Maximum change of a pose in one iteration."""
MAX_STRETCH, MAX_SHEAR = 0.15, 0.15
INITIAL_DAMPING = 0.1
WINDOW_MARGIN_PIXELS = 4
"""Width of the border around a sprite that the error is computed on, too."""


class PoseObjective:
    """The error reduction of n sprites as a function of their poses, one window for each.

    Args:
        context: What the layers of all images are composited with.
        images: Index of each sprite's image.
        sprites: The sprites.
        pose: Initial poses, which the windows are centered at.
        tints: Whether color gains are optimized; otherwise they are 1.
        stride: Use every ``stride``-th pixel of every ``stride``-th row.
        offsets: Whether color offsets are optimized, too.
    """

    def __init__(
        self,
        context: LayerContext,
        images: Int[Tensor, " n"],
        sprites: Float[Tensor, "n D h w"],
        pose: Float[Tensor, "n p"],
        tints: bool,
        stride: int = 1,
        offsets: bool = False,
    ) -> None:
        self.sprites, self.tints, self.offsets = sprites, tints, offsets
        self.pixel_area = stride**2
        longest = max(sprites.shape[2:]) * float(pose[:, 2].exp().max())
        side = 2 * (int(0.6 * longest) + WINDOW_MARGIN_PIXELS)
        corner = pose[:, :2].round().long() - side // 2
        steps = torch.arange(0, side, stride, device=pose.device)
        across, down = (corner[:, axis, None] + steps for axis in (0, 1))
        maps = torch.cat([*context], dim=1)
        height, width = maps.shape[2:]
        inside = ((down >= 0) & (down < height))[:, :, None] & (
            (across >= 0) & (across < width)
        )[:, None]
        index = (
            down.clamp(0, height - 1)[:, :, None] * width + across.clamp(0, width - 1)[:, None]
        )
        index = index.flatten(1)[:, None].expand(-1, maps.shape[1], -1)
        found = maps.flatten(2)[images].gather(2, index) * inside.flatten(1)[:, None]
        channels = context.residual.shape[1]
        parts = found.split([channels, channels, 1], dim=1)
        self.residual, self.hidden, self.transmittance = parts
        grid = torch.stack(torch.broadcast_tensors(across[:, None], down[:, :, None]), dim=3)
        self.points = grid.flatten(1, 2).to(pose) + 0.5

    def image_change(
        self, poses: Float[Tensor, "r n p"]
    ) -> tuple[Float[Tensor, "r n C m"], Float[Tensor, "r n 2 C"]]:
        """Return how sprites change the composite at r sets of poses, and their best colors.

        Gains, in [0, 1], and offsets minimize the squared error in closed form.
        """
        rounds = len(poses)
        pose = poses.flatten(0, 1)
        back = inverse_linear(pose, 2 * (-pose[:, 2]).exp() / max(self.sprites.shape[2:]))
        points = (self.points.repeat(rounds, 1, 1) - pose[:, None, :2]) @ back.mT
        shown = sample_points(self.sprites.repeat(rounds, 1, 1, 1), points, "zeros")
        shown = shown.unflatten(0, (rounds, -1))
        color, alpha = shown[:, :, :-1], softclip(shown[:, :, -1:])
        own = self.transmittance * alpha * color
        gains, offsets = torch.ones_like(own[..., 0]), torch.zeros_like(own[..., 0])
        change = own
        if self.tints:
            target = torch.addcmul(self.residual, alpha, self.hidden)
            match, energy = (target * own).sum(3), own.square().sum(3)
            flat = self.transmittance * alpha
            if self.offsets:
                area = flat.square().sum(3).clamp_min(MIN_ENERGY)
                level, both = (target * flat).sum(3), (own * flat).sum(3)
                match, energy = match - both * level / area, energy - both.square() / area
            gains = (match / energy.clamp_min(MIN_ENERGY)).clamp_(0.0, 1.0)
            change = gains[..., None] * own
            if self.offsets:
                offsets = (level - gains * both) / area
                change = torch.addcmul(change, offsets[..., None], flat)
        change = torch.addcmul(change, alpha, self.hidden, value=-1.0)
        return change, torch.stack([gains, offsets], dim=2)

    def error_reduction(self, change: Float[Tensor, "n C m"]) -> Float[Tensor, " n"]:
        """Return by how much a change of the composite lowers the squared error."""
        return self.pixel_area * (change * (2 * self.residual - change)).flatten(1).sum(1)


def refine_poses(
    objective: PoseObjective,
    pose: Float[Tensor, "n p"],
    steps: int,
    log_sizes: tuple[float, float] = (-math.inf, math.inf),
    turns: bool = True,
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n p"], Float[Tensor, "n 2 C"]]:
    """Maximize the error reduction by damped Gauss-Newton (Levenberg-Marquardt) steps.

    Colors are recomputed in closed form at each pose. The step that does not improve is
    rejected, and the damping of the next one is increased.

    Args:
        objective: The error reduction as a function of the poses.
        pose: Initial poses.
        steps: Number of iterations.
        log_sizes: Bounds of the log size.
        turns: Whether angles change.

    Returns:
        Error reductions, poses, and gains and offsets of colors.
    """
    damping = torch.full_like(pose[:, 0], INITIAL_DAMPING)
    size = pose.shape[1]
    limit, difference = (pose.new_tensor(each[:size]) for each in (MAX_STEP, DIFFERENCE_STEP))
    (change,), (tint,) = objective.image_change(pose[None])
    reduction = objective.error_reduction(change)
    for _ in range(steps):
        moved, _ = objective.image_change(pose + torch.diag(difference)[:, None])
        slopes = (moved - change).flatten(2).transpose(0, 1)
        jacobian = slopes / difference[:, None]
        if not turns:
            jacobian[:, 3] = 0.0
        residual = (objective.residual - change).flatten(1)
        hessian = jacobian @ jacobian.mT
        ridge = damping[:, None] * hessian.diagonal(dim1=1, dim2=2) + MIN_ENERGY
        gradient = jacobian @ residual[:, :, None]
        step = torch.linalg.solve(hessian + torch.diag_embed(ridge), gradient)
        tried = pose + step[:, :, 0].clamp(-limit, limit)
        tried[:, 2].clamp_(*log_sizes)
        tried[:, 4:5].clamp_(-MAX_STRETCH, MAX_STRETCH)
        tried[:, 5:].clamp_(-MAX_SHEAR, MAX_SHEAR)
        (tried_change,), (tried_tint,) = objective.image_change(tried[None])
        tried_reduction = objective.error_reduction(tried_change)
        better = tried_reduction > reduction
        pose = torch.where(better[:, None], tried, pose)
        tint = torch.where(better[:, None, None], tried_tint, tint)
        change = torch.where(better[:, None, None], tried_change, change)
        reduction = torch.where(better, tried_reduction, reduction)
        damping = torch.where(better, damping / 3, damping * 5)
    return reduction, pose, tint

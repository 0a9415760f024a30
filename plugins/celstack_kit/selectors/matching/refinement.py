"""Refine: move, turn and resize sprites a little, until they fit best."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.sampling import look_up
from celstack.geometry.softclip import softclip
from celstack_kit.selectors.matching.placement import turned_back
from celstack_kit.selectors.matching.templates import LEAST, Around

STEP = (0.5, 0.5, 0.04, 0.06)
"""How far poses are moved to see what changes: x, y, log size, angle."""
FARTHEST = (2.0, 2.0, 0.15, 0.25)
"""How far poses may go at a time."""
DAMPING = 0.1
ROOM = 4
"""How many pixels around a sprite are looked at, too."""


class Closeup:
    """Sprites held against windows of the canvas, one window to a sprite, at any pose.

    With a ``stride`` of 2, say, only every second pixel of every second row is looked at, and
    stands for its neighbors.
    """

    def __init__(
        self,
        around: Around,
        images: Int[Tensor, " n"],
        sprites: Float[Tensor, "n D h w"],
        pose: Float[Tensor, "n 4"],
        tints: bool,
        stride: int = 1,
    ) -> None:
        self.sprites, self.tints, self.area = sprites, tints, stride**2
        longest = max(sprites.shape[2:]) * float(pose[:, 2].exp().max())
        side = 2 * (int(0.6 * longest) + ROOM)
        corner = pose[:, :2].round().long() - side // 2
        steps = torch.arange(0, side, stride, device=pose.device)
        across, down = (corner[:, axis, None] + steps for axis in (0, 1))
        maps = torch.cat([*around], dim=1)
        height, width = maps.shape[2:]
        inside = ((down >= 0) & (down < height))[:, :, None] & (
            (across >= 0) & (across < width)
        )[:, None]
        index = (
            down.clamp(0, height - 1)[:, :, None] * width + across.clamp(0, width - 1)[:, None]
        )
        index = index.flatten(1)[:, None].expand(-1, maps.shape[1], -1)
        found = maps.flatten(2)[images].gather(2, index) * inside.flatten(1)[:, None]
        channels = around.residual.shape[1]
        self.residual, self.hidden, self.left = found.split([channels, channels, 1], dim=1)
        grid = torch.stack(torch.broadcast_tensors(across[:, None], down[:, :, None]), dim=3)
        self.points = grid.flatten(1, 2).to(pose) + 0.5

    def change(
        self, poses: Float[Tensor, "r n 4"]
    ) -> tuple[Float[Tensor, "r n C m"], Float[Tensor, "r n C"]]:
        """Return what sprites change in the image in their best colors, and their gains."""
        rounds = len(poses)
        pose = poses.flatten(0, 1)
        back = (
            turned_back(pose[:, 3])
            * (2 * (-pose[:, 2]).exp() / max(self.sprites.shape[2:]))[:, None, None]
        )
        points = (self.points.repeat(rounds, 1, 1) - pose[:, None, :2]) @ back.mT
        shown = look_up(self.sprites.repeat(rounds, 1, 1, 1), points, "zeros")
        shown = shown.unflatten(0, (rounds, -1))
        color, alpha = shown[:, :, :-1], softclip(shown[:, :, -1:])
        own = self.left * alpha * color
        gains = torch.ones_like(own[..., 0])
        if self.tints:
            match = torch.addcmul(self.residual, alpha, self.hidden).mul_(own).sum(3)
            gains = (match / own.square().sum(3).clamp_min(LEAST)).clamp_(0.0, 1.0)
        return torch.addcmul(gains[..., None] * own, alpha, self.hidden, value=-1.0), gains

    def saved(self, change: Float[Tensor, "n C m"]) -> Float[Tensor, " n"]:
        """Return by how much that lowers the squared error."""
        return self.area * (change * (2 * self.residual - change)).flatten(1).sum(1)


def refine(
    closeup: Closeup,
    pose: Float[Tensor, "n 4"],
    steps: int,
    log_sizes: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n 4"], Float[Tensor, "n C"]]:
    """Follow Gauss and Newton for some steps; return what is saved, the poses and the gains.

    Gains follow the poses in closed form. A step that does not save more is not taken, and
    the next one is shorter. Sizes stay between the least and the most of ``log_sizes``.
    """
    damping = torch.full_like(pose[:, 0], DAMPING)
    farthest, nudges = pose.new_tensor(FARTHEST), torch.diag(pose.new_tensor(STEP))
    (change,), (gains,) = closeup.change(pose[None])
    saved = closeup.saved(change)
    for _ in range(steps):
        nudged, _ = closeup.change(pose + nudges[:, None])
        slopes = (nudged - change).flatten(2).transpose(0, 1) / pose.new_tensor(STEP)[:, None]
        misses = (closeup.residual - change).flatten(1)
        curve = slopes @ slopes.mT
        stiff = damping[:, None] * curve.diagonal(dim1=1, dim2=2) + LEAST
        move = torch.linalg.solve(curve + torch.diag_embed(stiff), slopes @ misses[:, :, None])
        tried = pose + move[:, :, 0].clamp(-farthest, farthest)
        tried[:, 2].clamp_(*log_sizes)
        (tried_change,), (tried_gains,) = closeup.change(tried[None])
        tried_saved = closeup.saved(tried_change)
        better = tried_saved > saved
        pose = torch.where(better[:, None], tried, pose)
        gains = torch.where(better[:, None], tried_gains, gains)
        change = torch.where(better[:, None, None], tried_change, change)
        saved = torch.where(better, tried_saved, saved)
        damping = torch.where(better, damping / 3, damping * 5)
    return saved, pose, gains

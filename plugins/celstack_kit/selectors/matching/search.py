"""Search for the sprite and pose that lower the squared error of a layer most."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack_kit.selectors.matching.placement import Placement
from celstack_kit.selectors.matching.pose_bank import PoseBank
from celstack_kit.selectors.matching.refinement import PoseObjective, refine_poses
from celstack_kit.selectors.matching.scan_bank import ScanBank
from celstack_kit.selectors.matching.templates import LayerContext, Templates

MAX_REFINED_SPRITES = 3
"""Number of sprites whose poses are refined, and of ranks that can be asked for."""
MIN_RELATIVE_SCORE = 0.5
"""Candidates whose estimate is below this share of the best are not refined."""

CurrentSprites = tuple[Int[Tensor, " n"], Float[Tensor, "n p"]]
"""Sprites of a layer, and their poses."""


class SpriteChoice(NamedTuple):
    """The sprite for a layer of each image, its pose (see ``placement``) and its colors.

    ``error_reduction`` is the decrease of the squared error that the search estimates.
    """

    error_reduction: Float[Tensor, " n"]
    sprite: Int[Tensor, " n"]
    pose: Float[Tensor, "n p"]
    tint: Float[Tensor, "n 2 C"]
    """Gains, then offsets."""


class SpriteSearch(ABC):
    """Finds the sprite that lowers the squared error of a layer most."""

    @abstractmethod
    def __call__(
        self, context: LayerContext, current: CurrentSprites | None = None, rank: int = 0
    ) -> SpriteChoice:
        """Return the best choice for each image.

        Args:
            context: What the layer is composited with.
            current: The layer's current sprites, as further starting points.
            rank: Return the sprite of this rank instead of the best, which is 0.
        """


class TranslationSearch(SpriteSearch):
    """Exhaustive search over integer positions, then subpixel refinement of the best."""

    def __init__(
        self, sprites: Float[Tensor, "K D h w"], placement: Placement, steps: int
    ) -> None:
        self.sprites, self.placement, self.steps = sprites, placement, steps
        self.templates = Templates(sprites, placement.canvas, placement.can_tint)

    def __call__(
        self,
        context: LayerContext,
        current: CurrentSprites | None = None,  # noqa: ARG002 - is found anyway
        rank: int = 0,
    ) -> SpriteChoice:
        """Match all sprites at all positions."""
        found = self.templates.search(context, rank)
        reduction = found.reductions.gather(1, found.sprite[:, None])[:, 0]
        tint = torch.stack([found.gains, torch.zeros_like(found.gains)], dim=1)
        pose = self.placement.pose_at_corner(found.row, found.column).to(tint)
        if self.steps:
            image = torch.arange(len(pose), device=pose.device)
            sprites = self.sprites[found.sprite]
            objective = PoseObjective(context, image, sprites, pose, self.placement.can_tint)
            reduction, pose, tint = refine_poses(objective, pose, self.steps)
        return SpriteChoice(reduction, found.sprite, pose, tint)


class PoseSearch(SpriteSearch):
    """Coarse search over positions, angles and sizes, then refinement of the best sprites."""

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        placement: Placement,
        bank: PoseBank | ScanBank,
        sizes: list[float],
        steps: int,
        offsets: bool,
        turns: bool,
    ) -> None:
        self.sprites, self.placement, self.steps = sprites, placement, steps
        self.bank, self.offsets, self.turns = bank, offsets, turns
        # An upper bound of the size makes sprites learn all details that are visible.
        self.log_sizes = (math.log(min(sizes)), math.log(max(sizes)))

    def __call__(
        self, context: LayerContext, current: CurrentSprites | None = None, rank: int = 0
    ) -> SpriteChoice:
        """Refine candidates by half of the steps at lower resolution, then the best one."""
        estimate, poses = self.bank.search(context, None if current is None else current[1])
        poses = pad(poses, (0, self.placement.pose_size - poses.shape[3]))
        num_refined = min(MAX_REFINED_SPRITES, estimate.shape[1])
        sprite = estimate[:, :, 0].topk(num_refined, dim=1).indices
        own = sprite[:, :, None].expand(-1, -1, estimate.shape[2])
        estimate = estimate.gather(1, own).flatten(1)
        pose = poses.gather(1, sprite[:, :, None, None].expand(-1, -1, *poses.shape[2:]))
        sprite, pose = sprite.repeat_interleave(pose.shape[2], dim=1), pose.flatten(1, 2)
        best = estimate.amax(1, keepdim=True)
        # Sprites of a later rank may be far below the best.
        promising = (estimate >= MIN_RELATIVE_SCORE * best) | (estimate == best) | bool(rank)
        if current is not None:
            sprite = torch.cat([sprite, current[0][:, None].clamp_min(0)], dim=1)
            pose = torch.cat([pose, current[1][:, None]], dim=1)
            promising = pad(promising, (0, 1), value=True)
        image, _ = which = promising.nonzero(as_tuple=True)
        _, refined, _ = self._refine(
            context, image, sprite[which], pose[which], self.steps // 2, stride=2
        )
        pose[which] = refined
        reduction = torch.full_like(pose[:, :, 0], -torch.inf)
        reduction[which] = self._refine(context, image, sprite[which], refined, 0)[0]
        for _ in range(rank):
            first = sprite.gather(1, reduction.argmax(1, keepdim=True))
            reduction = reduction.masked_fill(sprite == first, -torch.inf)
        image = torch.arange(len(sprite), device=sprite.device)
        chosen = reduction.argmax(1)
        sprite, pose = sprite[image, chosen], pose[image, chosen]
        steps = self.steps - self.steps // 2
        reduction, pose, tint = self._refine(context, image, sprite, pose, steps)
        return SpriteChoice(reduction, sprite, pose, tint)

    def _refine(
        self,
        context: LayerContext,
        image: Int[Tensor, " m"],
        sprite: Int[Tensor, " m"],
        pose: Float[Tensor, "m p"],
        steps: int,
        stride: int = 1,
    ) -> tuple[Float[Tensor, " m"], Float[Tensor, "m p"], Float[Tensor, "m 2 C"]]:
        tints = self.placement.can_tint
        objective = PoseObjective(
            context, image, self.sprites[sprite], pose, tints, stride, self.offsets
        )
        return refine_poses(objective, pose, steps, self.log_sizes, self.turns)

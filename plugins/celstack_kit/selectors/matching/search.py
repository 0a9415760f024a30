"""Search: ways to find the sprite that explains most of what is left of an image."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack_kit.selectors.matching.placement import Placing
from celstack_kit.selectors.matching.pose_bank import Bank
from celstack_kit.selectors.matching.refinement import Closeup, refine
from celstack_kit.selectors.matching.templates import Around, Templates

MOST = 3
"""How many sprites are looked at closely, or come first in turn."""
NEAR = 0.5
"""What seems to save less than this share of the most is not looked at."""

Present = tuple[Int[Tensor, " n"], Float[Tensor, "n 4"]]
"""Sprites that are there already, and their poses."""


class Choice(NamedTuple):
    """A sprite for a layer of each image, its pose (``placing``) and the gains of its colors.

    ``saved`` is by how much it lowers the squared error, as far as the search can see.
    """

    saved: Float[Tensor, " n"]
    sprite: Int[Tensor, " n"]
    pose: Float[Tensor, "n 4"]
    gains: Float[Tensor, "n C"]


class Search(ABC):
    """Finds the sprite that explains most of what a layer finds."""

    @abstractmethod
    def __call__(
        self,
        around: Around,
        present: Present | None = None,
        rank: int = 0,
    ) -> Choice:
        """Return the best choice for each image; or the next best sprite, by its rank.

        From what is ``present``, it may be a short way to something better.
        """


class Upright(Search):
    """Look at every place, for sprites as they are; then between the pixels, if told to."""

    def __init__(self, sprites: Float[Tensor, "K D h w"], placing: Placing, steps: int) -> None:
        self.sprites, self.placing, self.steps = sprites, placing, steps
        self.templates = Templates(sprites, placing.canvas, placing.tints)

    def __call__(
        self,
        around: Around,
        present: Present | None = None,  # noqa: ARG002
        rank: int = 0,
    ) -> Choice:
        """Look everywhere; what is present is somewhere, too."""
        found = self.templates.search(around, rank)
        saved, gains = found.saved.gather(1, found.sprite[:, None])[:, 0], found.gains
        pose = self.placing.corner(found.row, found.column).to(gains)
        if self.steps:
            image = torch.arange(len(pose), device=pose.device)
            sprites = self.sprites[found.sprite]
            closeup = Closeup(around, image, sprites, pose, self.placing.tints)
            saved, pose, gains = refine(closeup, pose, self.steps)
        return Choice(saved, found.sprite, pose, gains)


class Turned(Search):
    """Look coarsely at every place, angle and size; then closely at the best few sprites."""

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        placing: Placing,
        turns: int,
        sizes: list[float],
        steps: int,
    ) -> None:
        self.sprites, self.placing, self.steps = sprites, placing, steps
        self.bank = Bank(sprites, placing.canvas, turns, sizes, placing.tints)
        # Sprites that are never enlarged beyond this have to learn all there is to see.
        self.log_sizes = (math.log(min(sizes)), math.log(max(sizes)))

    def __call__(
        self,
        around: Around,
        present: Present | None = None,
        rank: int = 0,
    ) -> Choice:
        """Follow the best few, and what is present, with half an eye; then the best closely."""
        hope, poses = self.bank.search(around)
        sprite = hope[:, :, 0].topk(min(MOST, hope.shape[1]), dim=1).indices
        hope = hope.gather(1, sprite[:, :, None].expand(-1, -1, hope.shape[2])).flatten(1)
        pose = poses.gather(1, sprite[:, :, None, None].expand(-1, -1, *poses.shape[2:]))
        sprite, pose = sprite.repeat_interleave(pose.shape[2], dim=1), pose.flatten(1, 2)
        most = hope.amax(1, keepdim=True)
        # Whoever comes later in rank need not be near the first.
        worth = (hope >= NEAR * most) | (hope == most) | bool(rank)
        if present is not None:
            sprite = torch.cat([sprite, present[0][:, None].clamp_min(0)], dim=1)
            pose = torch.cat([pose, present[1][:, None]], dim=1)
            worth = pad(worth, (0, 1), value=True)
        image, _ = which = worth.nonzero(as_tuple=True)
        _, found, _ = self._follow(
            around, image, sprite[which], pose[which], self.steps // 2, stride=2
        )
        pose[which] = found
        saved = torch.full_like(pose[:, :, 0], -torch.inf)
        saved[which] = self._follow(around, image, sprite[which], found, 0)[0]
        for _ in range(rank):
            first = sprite.gather(1, saved.argmax(1, keepdim=True))
            saved = saved.masked_fill(sprite == first, -torch.inf)
        image, best = torch.arange(len(sprite), device=sprite.device), saved.argmax(1)
        sprite, pose = sprite[image, best], pose[image, best]
        steps = self.steps - self.steps // 2
        saved, pose, gains = self._follow(around, image, sprite, pose, steps)
        return Choice(saved, sprite, pose, gains)

    def _follow(
        self,
        around: Around,
        image: Int[Tensor, " m"],
        sprite: Int[Tensor, " m"],
        pose: Float[Tensor, "m 4"],
        steps: int,
        stride: int = 1,
    ) -> tuple[Float[Tensor, " m"], Float[Tensor, "m 4"], Float[Tensor, "m C"]]:
        tints = self.placing.tints
        closeup = Closeup(around, image, self.sprites[sprite], pose, tints, stride)
        return refine(closeup, pose, steps, self.log_sizes)

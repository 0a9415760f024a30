"""Search: ways to find the sprite that explains most of what is left of an image."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack_kit.selectors.bank import Bank
from celstack_kit.selectors.placing import Placing
from celstack_kit.selectors.refine import Closeup, refine
from celstack_kit.selectors.templates import Around, Templates

MOST = 3
"""How many sprites are looked at closely."""

Choice = tuple[Int[Tensor, " n"], Float[Tensor, "n P"], Float[Tensor, "n Q"]]
"""Sprites, and the parameters that put them where they are, of sprites and of layers."""
Search = Callable[[Around], Choice]


class Upright:
    """Look at every place, for sprites as they are; then between the pixels, if told to."""

    def __init__(self, sprites: Float[Tensor, "K D h w"], placing: Placing, steps: int) -> None:
        self.sprites, self.placing, self.steps = sprites, placing, steps
        self.templates = Templates(sprites, placing.canvas, placing.tints)

    def __call__(self, around: Around) -> Choice:
        """Return the best choice for each image."""
        found = self.templates.search(around)
        pose, gains = self.placing.corner(found.row, found.column).to(found.gains), found.gains
        if self.steps:
            image = torch.arange(len(pose), device=pose.device)
            sprites = self.sprites[found.sprite]
            closeup = Closeup(around, image, sprites, pose, self.placing.tints)
            _, pose, gains = refine(closeup, pose, self.steps)
        return found.sprite, *self.placing.params(pose, gains)


class Turned:
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
        self.bank = Bank(sprites, placing.canvas, turns, sizes)

    def __call__(self, around: Around) -> Choice:
        """Return the best choice for each image."""
        saved, poses = self.bank.search(around)
        few = min(MOST, saved.shape[1])
        sprite = saved.topk(few, dim=1).indices
        pose = poses.gather(1, sprite[:, :, None].expand(-1, -1, 4)).flatten(0, 1)
        image, sprite = torch.arange(len(sprite), device=sprite.device), sprite.flatten()
        each, sprites = image.repeat_interleave(few), self.sprites[sprite]
        closeup = Closeup(around, each, sprites, pose, self.placing.tints)
        saved, pose, gains = refine(closeup, pose, self.steps)
        best = saved.view(-1, few).argmax(1) + few * image
        return sprite[best], *self.placing.params(pose[best], gains[best])

"""Bank: turned and resized sprites, held against what is not explained yet, coarsely."""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool2d

from celstack.geometry.sampling import look_up
from celstack.geometry.softclip import softclip
from celstack_kit.selectors.matching.low_rank import Blends, find_shares
from celstack_kit.selectors.matching.placement import turned_back
from celstack_kit.selectors.matching.templates import LEAST, Around, Templates

COARSE = 2
"""How many pixels of the canvas, along each side, are one where sprites are looked for."""

ANOTHER = math.radians(50)
"""Angles that differ by less are much the same."""


class Bank:
    """K sprites at R angles and sizes, at a lower resolution: first guesses only."""

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        canvas: tuple[int, int],
        turns: int,
        sizes: list[float],
        tint: bool = True,
    ) -> None:
        angles = torch.arange(turns).to(sprites) * (2 * math.pi / turns)
        log_sizes = sprites.new_tensor(sizes).log()
        self.ways = torch.cartesian_prod(log_sizes, angles).view(-1, 2)
        turned = self.ways[:, None, 1] - self.ways[:, 1]
        self.alike = turned.cos() > math.cos(ANOTHER)
        self.count = len(sprites)
        seen = seen_in(sprites, self.ways, even_window(max(sprites.shape[2:]) * max(sizes)))
        color, mask = seen[:, :-1], seen[:, -1:]
        shares = find_shares(torch.cat([mask * color, mask], dim=1).flatten(1))
        coarse = (canvas[0] // COARSE, canvas[1] // COARSE)
        self.templates = Templates(seen, coarse, tint, partial(Blends, shares=shares))

    def search(self, around: Around) -> tuple[Float[Tensor, "B K n"], Float[Tensor, "B K n 4"]]:
        """Return what each sprite may save at its best, and the pose in which it does.

        And the same for the best pose at quite another angle, if there are such angles: where
        a sprite looks much the same turned, only a closer look tells which way it is.
        """
        saved, _ = self.templates.scores(Around(*(avg_pool2d(maps, COARSE) for maps in around)))
        columns = saved.shape[3]
        most, place = (
            found.unflatten(1, (self.count, -1)) for found in saved.flatten(2).max(2)
        )
        way = most.argmax(2, keepdim=True)
        others = most.masked_fill(self.alike[way[:, :, 0]], -torch.inf)
        if not self.alike.all():
            way = torch.cat([way, others.argmax(2, keepdim=True)], dim=2)
        most, place = most.gather(2, way), place.gather(2, way)
        # The first place is half a window out, where the window's center is on the corner.
        center = torch.stack([place % columns, place // columns], dim=3) * float(COARSE)
        return most * COARSE**2, torch.cat([center, self.ways[way]], dim=3)


def seen_in(
    sprites: Float[Tensor, "K D h w"], ways: Float[Tensor, "R 2"], window: int
) -> Float[Tensor, "KR D t t"]:
    """Return all sprites, seen in all ways."""
    log_size, angle = ways.unbind(1)
    pixels = torch.arange(window).to(sprites) + 0.5 - window / 2
    points = torch.stack(torch.meshgrid(pixels, pixels, indexing="xy"), dim=-1).view(-1, 2)
    back = turned_back(angle) * (2 * (-log_size).exp() / max(sprites.shape[2:]))[:, None, None]
    # Sprites are channels: all of them look through the same points.
    channels = sprites.flatten(0, 1).expand(len(ways), -1, -1, -1)
    found = look_up(channels, points @ back.mT, "zeros").unflatten(1, sprites.shape[:2])
    found = found.transpose(0, 1).flatten(0, 1).unflatten(2, (window, window))
    mask = softclip(found[:, -1:])
    mask, shown = avg_pool2d(mask, COARSE), avg_pool2d(mask * found[:, :-1], COARSE)
    # Softly clipped masks may be a little below zero; colors are what they are there, too.
    color = torch.where(mask.abs() > LEAST, shown / mask, 0.0)
    return torch.cat([color, mask], dim=1)


def even_window(length: float) -> int:
    """Return a window that holds a turned sprite but for its corners, whole when coarse."""
    return 2 * COARSE * math.ceil(1.15 * length / (2 * COARSE))

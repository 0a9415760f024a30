"""Templates: sprites held against what is not explained yet, at every place."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.softclip import softclip
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.low_rank import Blends

Hold = Callable[[Float[Tensor, "K G h w"], tuple[int, int]], Correlation | Blends]
"""How templates are held against maps of some size."""
LEAST = 1e-6
"""Less energy than this is none."""


class Around(NamedTuple):
    """What a layer finds: with mask m and color c it makes the image A + m (E c - D).

    ``residual`` is what A, the composite of the others, does not explain. D is what the layer
    would hide; E is how much of the layer the others leave visible.
    """

    residual: Float[Tensor, "B C H W"]
    hidden: Float[Tensor, "B C H W"]
    left: Float[Tensor, "B 1 H W"]

    def saved(self, shown: Float[Tensor, "B D H W"]) -> Float[Tensor, " B"]:
        """Return by how much a layer that shows this lowers the summed squared error."""
        color, alpha = shown[:, :-1], shown[:, -1:]
        change = alpha * (self.left * color - self.hidden)
        return (change * (2 * self.residual - change)).flatten(1).sum(1)

    def of(self, images: Int[Tensor, " m"]) -> "Around":
        """Return the same of some of the images."""
        return Around(self.residual[images], self.hidden[images], self.left[images])


class Found(NamedTuple):
    """A sprite for a layer of each image, its place, and the gains of its colors.

    ``saved`` is what each sprite would save at its best place.
    """

    saved: Float[Tensor, "B K"]
    sprite: Int[Tensor, " B"]
    row: Int[Tensor, " B"]
    column: Int[Tensor, " B"]
    gains: Float[Tensor, "B C"]


class Templates:
    """K sprites at their own size, one pixel of theirs to one of the canvas."""

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        canvas: tuple[int, int],
        tint: bool,
        hold: Hold = Correlation,
    ) -> None:
        color, mask = sprites[:, :-1], softclip(sprites[:, -1:])
        shown = mask * color

        self.tint = tint
        self.mask = hold(torch.cat([mask, mask.square()], dim=1), canvas)
        self.colors = [
            hold(torch.cat([one, mask * one], dim=1), canvas) for one in shown.split(1, dim=1)
        ]
        self.energies = [hold(one.square(), canvas) for one in shown.split(1, dim=1)]
        everywhere = sprites.new_ones(1, 1, *canvas)
        self.unhidden = [energy(everywhere).clamp_min_(LEAST) for energy in self.energies]

    def scores(
        self, around: Around
    ) -> tuple[Float[Tensor, "B K P Q"], list[Float[Tensor, "b K P Q"]]]:
        """Return what every sprite saves at every place, and the gains with which it does.

        Gains are between 0 and 1, or all 1, one map to a color. With gain g, a template of
        color t and mask m saves 2 g a - g^2 b - c, where a = <E r, m t> + <E D, m^2 t>,
        b = <E^2, m^2 t^2> and c = <2 r D, m> + <D^2, m^2>.
        """
        residual, hidden, left = around
        hides, free = bool(hidden.any()), bool((left == 1).all())
        saved: Tensor | None = None
        if hides:
            products = torch.cat([2 * residual * hidden, hidden.square()]).sum(1)
            products = torch.stack(products.chunk(2), dim=1)
            saved = self.mask(products).neg_()
        gains = []
        for channel, template in enumerate(self.colors):
            mine = residual[:, channel : channel + 1] * left
            if hides:
                mine = torch.cat([mine, hidden[:, channel : channel + 1] * left], dim=1)
            match = template(mine)
            energy = self.unhidden[channel]
            if not free:
                energy = self.energies[channel](left.square()).clamp_min_(LEAST)
            gain = (match / energy).clamp_(0.0, 1.0) if self.tint else torch.ones_like(energy)
            gains.append(gain)
            save = match.mul_(2).addcmul_(gain, energy, value=-1.0).mul_(gain)
            saved = save if saved is None else saved.add_(save)
        assert saved is not None  # images have at least one channel
        return saved, gains

    def search(self, around: Around, rank: int = 0) -> Found:
        """Find sprite, place and gains that save most; or the next best sprite, by its rank."""
        saved, gains = self.scores(around)
        batch, sprites, rows, columns = saved.shape
        most, place = saved.flatten(2).max(2)
        sprite = most.topk(rank + 1, dim=1).indices[:, rank]
        place = place.gather(1, sprite[:, None])[:, 0]
        image = torch.arange(batch, device=saved.device)
        row, column = place // columns, place % columns
        chosen = [
            gain.expand(batch, sprites, rows, columns)[image, sprite, row, column]
            for gain in gains
        ]
        above, before = self.mask.margin
        return Found(most, sprite, row - above, column - before, torch.stack(chosen, dim=1))

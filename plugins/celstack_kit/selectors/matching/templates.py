"""Template matching: how much a sprite at any position lowers the squared error."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry import softclip
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.low_rank import LowRankCorrelation

CorrelationFactory = Callable[
    [Float[Tensor, "K G h w"], tuple[int, int]], Correlation | LowRankCorrelation
]
"""Makes the cross-correlation of templates with maps of some size."""
MIN_ENERGY = 1e-6
"""Lower bound of a template's energy, in place of zero in divisions."""


class LayerContext(NamedTuple):
    """What a layer is composited with: mask m and color c make the image The + m (E c - D).

    The is the composite of the other layers, and ``residual`` is the image minus The. D
    (``hidden``) is what the layer would occlude. E (``transmittance``) is the share of the
    layer that the layers in front leave visible.
    """

    residual: Float[Tensor, "B C H W"]
    hidden: Float[Tensor, "B C H W"]
    transmittance: Float[Tensor, "B 1 H W"]

    def error_reduction(self, layer: Float[Tensor, "B D H W"]) -> Float[Tensor, " B"]:
        """Return by how much a rendered layer (color and alpha) lowers the squared error."""
        color, alpha = layer[:, :-1], layer[:, -1:]
        change = alpha * (self.transmittance * color - self.hidden)
        return (change * (2 * self.residual - change)).flatten(1).sum(1)


class TemplateMatch(NamedTuple):
    """The selected sprite of each image, its top left pixel, and its color gains.

    ``reductions`` has the error reduction of every sprite at its best position.
    """

    reductions: Float[Tensor, "B K"]
    sprite: Int[Tensor, " B"]
    row: Int[Tensor, " B"]
    column: Int[Tensor, " B"]
    gains: Float[Tensor, "B C"]


class Templates:
    """K sprites at their own scale, matched at every position of the canvas.

    Args:
        sprites: The sprites.
        canvas: Height and width of the canvas.
        tint: Whether color gains are optimized; otherwise they are 1.
        make_correlation: The cross-correlation to use.
    """

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        canvas: tuple[int, int],
        tint: bool,
        make_correlation: CorrelationFactory = Correlation,
    ) -> None:
        color, mask = sprites[:, :-1], softclip(sprites[:, -1:])
        shown = mask * color

        self.tint = tint
        self.mask = make_correlation(torch.cat([mask, mask.square()], dim=1), canvas)
        self.colors = [
            make_correlation(torch.cat([one, mask * one], dim=1), canvas)
            for one in shown.split(1, dim=1)
        ]
        self.energies = [
            make_correlation(one.square(), canvas) for one in shown.split(1, dim=1)
        ]
        everywhere = sprites.new_ones(1, 1, *canvas)
        self.unoccluded = [
            energy(everywhere).clamp_min_(MIN_ENERGY) for energy in self.energies
        ]

    def scores(
        self, context: LayerContext
    ) -> tuple[Float[Tensor, "B K P Q"], list[Float[Tensor, "b K P Q"]]]:
        """Return the error reduction of every sprite at every position, and the gains used.

        Gains are in [0, 1], or all 1 without tint; there is one map per channel. With gain g, a
        template of color t and mask m reduces the squared error by 2 g a - g^2 b - c, where
        a = <E r, m t> + <E D, m^2 t>, b = <E^2, m^2 t^2> and c = <2 r D, m> + <D^2, m^2>, each
        a cross-correlation; r is the residual.
        """
        residual, hidden, transmittance = context
        hides, free = bool(hidden.any()), bool((transmittance == 1).all())
        reduction: Tensor | None = None
        if hides:
            products = torch.cat([2 * residual * hidden, hidden.square()]).sum(1)
            products = torch.stack(products.chunk(2), dim=1)
            reduction = self.mask(products).neg_()
        gains = []
        for channel, template in enumerate(self.colors):
            maps = residual[:, channel : channel + 1] * transmittance
            if hides:
                maps = torch.cat(
                    [maps, hidden[:, channel : channel + 1] * transmittance], dim=1
                )
            match = template(maps)
            energy = self.unoccluded[channel]
            if not free:
                energy = self.energies[channel](transmittance.square()).clamp_min_(MIN_ENERGY)
            gain = (match / energy).clamp_(0.0, 1.0) if self.tint else torch.ones_like(energy)
            gains.append(gain)
            part = match.mul_(2).addcmul_(gain, energy, value=-1.0).mul_(gain)
            reduction = part if reduction is None else reduction.add_(part)
        assert reduction is not None  # images have at least one channel
        return reduction, gains

    def search(self, context: LayerContext, rank: int = 0) -> TemplateMatch:
        """Return the sprite of this rank, by error reduction at its best position."""
        reduction, gains = self.scores(context)
        batch, sprites, rows, columns = reduction.shape
        best, position = reduction.flatten(2).max(2)
        sprite = best.topk(rank + 1, dim=1).indices[:, rank]
        position = position.gather(1, sprite[:, None])[:, 0]
        image = torch.arange(batch, device=reduction.device)
        row, column = position // columns, position % columns
        chosen = [
            gain.expand(batch, sprites, rows, columns)[image, sprite, row, column]
            for gain in gains
        ]
        above, before = self.mask.margin
        gains_there = torch.stack(chosen, dim=1)
        return TemplateMatch(best, sprite, row - above, column - before, gains_there)

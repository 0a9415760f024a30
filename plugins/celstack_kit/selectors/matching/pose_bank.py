"""Coarse template matching of rotated and scaled sprites, for initial poses."""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool2d

from celstack.geometry import sample_points, softclip
from celstack_kit.selectors.matching.low_rank import LowRankCorrelation, low_rank_basis
from celstack_kit.selectors.matching.placement import inverse_rotation
from celstack_kit.selectors.matching.templates import MIN_ENERGY, LayerContext, Templates

DOWNSAMPLING = 2
"""Factor by which canvas and sprites are downsampled for the search."""

SIMILAR_ANGLE = math.radians(50)
"""Poses whose angles differ by less are suppressed in favor of the best one."""


class PoseBank:
    """K sprites rendered at R combinations of scale and angle, at low resolution."""

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
        self.variants = torch.cartesian_prod(log_sizes, angles).view(-1, 2)
        difference = self.variants[:, None, 1] - self.variants[:, 1]
        self.similar = difference.cos() > math.cos(SIMILAR_ANGLE)
        self.count = len(sprites)
        window = window_size(max(sprites.shape[2:]) * max(sizes))
        rendered = render_variants(sprites, self.variants, window)
        color, mask = rendered[:, :-1], rendered[:, -1:]
        basis = low_rank_basis(torch.cat([mask * color, mask], dim=1).flatten(1))
        coarse = (canvas[0] // DOWNSAMPLING, canvas[1] // DOWNSAMPLING)
        correlation = partial(LowRankCorrelation, basis=basis)
        self.templates = Templates(rendered, coarse, tint, correlation)

    def search(
        self,
        context: LayerContext,
        current: Float[Tensor, "B p"] | None = None,  # noqa: ARG002 - is found anyway
    ) -> tuple[Float[Tensor, "B K n"], Float[Tensor, "B K n 4"]]:
        """Return the estimated error reductions and the poses of each sprite's best variants.

        n is 1, or 2 if angles differ enough: then the second pose is the best after
        non-maximum suppression over angles, since a sprite may look similar when rotated, and
        only refinement at full resolution tells which pose is right.
        """
        coarse = LayerContext(*(avg_pool2d(maps, DOWNSAMPLING) for maps in context))
        reduction, _ = self.templates.scores(coarse)
        columns = reduction.shape[3]
        best, position = (
            found.unflatten(1, (self.count, -1)) for found in reduction.flatten(2).max(2)
        )
        variant = best.argmax(2, keepdim=True)
        others = best.masked_fill(self.similar[variant[:, :, 0]], -torch.inf)
        if not self.similar.all():
            variant = torch.cat([variant, others.argmax(2, keepdim=True)], dim=2)
        best, position = best.gather(2, variant), position.gather(2, variant)
        # At output (0, 0) the center of the window is at the canvas's corner.
        center = torch.stack([position % columns, position // columns], dim=3)
        center = center * float(DOWNSAMPLING)
        return best * DOWNSAMPLING**2, torch.cat([center, self.variants[variant]], dim=3)


def render_variants(
    sprites: Float[Tensor, "K D h w"], variants: Float[Tensor, "R 2"], window: int
) -> Float[Tensor, "KR D t t"]:
    """Return each sprite at each (log size, angle), downsampled, in square windows."""
    log_size, angle = variants.unbind(1)
    pixels = torch.arange(window).to(sprites) + 0.5 - window / 2
    points = torch.stack(torch.meshgrid(pixels, pixels, indexing="xy"), dim=-1).view(-1, 2)
    scale = 2 * (-log_size).exp() / max(sprites.shape[2:])
    back = inverse_rotation(angle) * scale[:, None, None]
    # Sprites are stacked as channels, since all are sampled at the same points.
    channels = sprites.flatten(0, 1).expand(len(variants), -1, -1, -1)
    found = sample_points(channels, points @ back.mT, "zeros").unflatten(1, sprites.shape[:2])
    found = found.transpose(0, 1).flatten(0, 1).unflatten(2, (window, window))
    mask = softclip(found[:, -1:])
    mask, shown = avg_pool2d(mask, DOWNSAMPLING), avg_pool2d(mask * found[:, :-1], DOWNSAMPLING)
    # Softly clipped masks may be slightly negative; the quotient is the color there, too.
    color = torch.where(mask.abs() > MIN_ENERGY, shown / mask, 0.0)
    return torch.cat([color, mask], dim=1)


def window_size(length: float) -> int:
    """Return the side of a window for a rotated sprite, divisible by twice the downsampling.

    The corners of a square sprite may be cut off.
    """
    return 2 * DOWNSAMPLING * math.ceil(1.15 * length / (2 * DOWNSAMPLING))

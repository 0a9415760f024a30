"""Coarse search for sprites where something is, instead of everywhere."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from celstack_kit.selectors.matching.pose_bank import (
    DOWNSAMPLING,
    render_variants,
    window_size,
)
from celstack_kit.selectors.matching.scan_cpu import scan
from celstack_kit.selectors.matching.templates import LayerContext

NOISE_DEVIATIONS = 6.0
"""Residuals are noise below this number of standard deviations of their image."""
MIN_RESIDUAL = 0.03
CENTER_REACH = 5
"""Side of the square around a residual in which centers of sprites are searched for."""
LOCAL_REACH = 2
"""Distance from the current center, in coarse pixels, that a layer is searched for in."""


class ScanBank:
    """K sprites at several sizes and angles, matched only at residuals.

    Residuals are what differs from the other layers and the background by more than noise,
    whose level is estimated for each image.
    """

    def __init__(
        self,
        sprites: Float[Tensor, "K D h w"],
        turns: int,
        sizes: list[float],
        tints: bool,
        offsets: bool,
    ) -> None:
        angles = torch.arange(turns).to(sprites) * (2 * math.pi / turns)
        self.variants = torch.cartesian_prod(sprites.new_tensor(sizes).log(), angles).view(
            -1, 2
        )
        self.count, self.tints, self.offsets = len(sprites), tints, offsets
        window = window_size(max(sprites.shape[2:]) * max(sizes))
        self.templates = render_variants(sprites, self.variants, window).cpu()

    def search(
        self, context: LayerContext, current: Float[Tensor, "B p"] | None = None
    ) -> tuple[Float[Tensor, "B K 1"], Float[Tensor, "B K 1 4"]]:
        """Return the estimated error reduction and the pose of each sprite's best variant.

        Args:
            context: What the layer is composited with.
            current: The layer's current poses; then only their surroundings are searched.
        """
        coarse = LayerContext(*(avg_pool2d(maps, DOWNSAMPLING) for maps in context))
        where = _residual_centers(coarse) if current is None else _near(coarse, current)
        # The loops are compiled for CPUs; the maps are small.
        coarse = LayerContext(*(maps.cpu() for maps in coarse))
        found = scan(coarse, where.cpu(), self.templates, self.count, self.tints, self.offsets)
        score, template, place = (values.to(context.residual.device) for values in found)
        center = place.flip(2).to(score) * DOWNSAMPLING
        variant = self.variants[template % len(self.variants)]
        pose = torch.cat([center, variant], dim=2)
        return score[:, :, None] * DOWNSAMPLING**2, pose[:, :, None]


def _residual_centers(context: LayerContext) -> Bool[Tensor, "B H W"]:
    """Return every other pixel around residuals, as on a checkerboard."""
    strength = context.residual.abs().amax(1)
    noise = 1.4826 * strength.flatten(1).median(1).values
    limit = (NOISE_DEVIATIONS * noise).clamp_min(MIN_RESIDUAL)
    present = (strength > limit[:, None, None]).to(strength)
    reach = max_pool2d(present[:, None], CENTER_REACH, 1, CENTER_REACH // 2)[:, 0] > 0
    rows, columns = (torch.arange(length) for length in strength.shape[1:])
    return reach & ((rows[:, None] + columns) % 2 == 0).to(reach.device)


def _near(context: LayerContext, poses: Float[Tensor, "B p"]) -> Bool[Tensor, "B H W"]:
    """Return the pixels around the centers of poses."""
    height, width = context.residual.shape[2:]
    x, y = (poses[:, :2] / DOWNSAMPLING).round().unbind(1)
    rows, columns = (torch.arange(length).to(poses) for length in (height, width))
    down = (rows - y.clamp(0, height - 1)[:, None]).abs() <= LOCAL_REACH
    across = (columns - x.clamp(0, width - 1)[:, None]).abs() <= LOCAL_REACH
    return down[:, :, None] & across[:, None]

"""Light: multiply an image by a brightness that varies smoothly over it, as shadows do."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from celstack import BrowserCode, Transform, hookimpl
from celstack.geometry import softclip, softexp

LEVEL_FLOOR = 0.02
"""Added to levels before their logarithm is taken, so that black has one."""
NOISE_DEVIATIONS = 6.0
"""Pixels of another hue than the image, by more standard deviations, have little weight."""
MIN_HUE_DEVIATION = 0.005
MAX_LOG_LIGHT = 1.5
ITERATIONS = 10
PRIOR_PIXELS = 2.0
"""The light of a cell without pixels to fit is 1; with this many, half of what they say."""


class Light(Transform):
    """Logarithms of brightness on a grid of ``cells`` x ``cells``, bilinearly interpolated.

    For backgrounds whose light differs from image to image: gains, vignettes and shadows.
    All channels are multiplied alike; alpha is unchanged.
    """

    def __init__(self, cells: Annotated[int, Ge(2)] = 4) -> None:
        super().__init__()
        self.cells = cells
        self.num_params = cells**2

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Multiply the colors by the brightness of their place."""
        size = (images.shape[2], images.shape[3])
        colors, alpha = images.split([images.shape[1] - 1, 1], dim=1)
        return torch.cat([softclip(colors * softexp(self._spread(params, size))), alpha], dim=1)

    def params_from_target(
        self,
        images: Float[Tensor, "n C h w"],
        targets: Float[Tensor, "n C h w"],
        weights: Float[Tensor, "n 1 h w"],
    ) -> Float[Tensor, "n P"]:
        """Return the light under which images are nearest to targets of the same hue.

        Where a target has another hue, it shows something else than the image under another
        light, and has little weight; what a hue is, is told from the noise of each target.
        """
        ratio = ((targets + LEVEL_FLOOR).clamp_min(1e-3) / (images + LEVEL_FLOOR)).log()
        value = ratio.mean(1, keepdim=True).clamp(-MAX_LOG_LIGHT, MAX_LOG_LIGHT)
        hue = (ratio - value).abs().amax(1, keepdim=True)
        noise = 1.4826 * hue.flatten(1).median(1).values.clamp_min(MIN_HUE_DEVIATION)
        same = 1 / (1 + (hue / (NOISE_DEVIATIONS * noise[:, None, None, None])).square())
        weights = weights * same.square()
        size = (images.shape[2], images.shape[3])
        params = value.new_zeros(len(value), self.num_params)
        total = self._gather(weights) + PRIOR_PIXELS
        for _ in range(ITERATIONS):
            rest = weights * (value - self._spread(params, size))
            params = params + self._gather(rest) / total
        return params

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, light.js."""
        return BrowserCode.beside(__file__, cells=self.cells)

    def _spread(
        self, params: Float[Tensor, "n P"], size: tuple[int, int]
    ) -> Float[Tensor, "n 1 h w"]:
        """Interpolate the grid over an image of this size."""
        grid = params.view(-1, 1, self.cells, self.cells)
        return interpolate(grid, size, mode="bilinear", align_corners=True)

    def _gather(self, maps: Float[Tensor, "n 1 h w"]) -> Float[Tensor, "n P"]:
        """Sum the pixels of each cell of the grid, with the weights of ``_spread``."""
        tall, wide = (_tents(length, self.cells, maps) for length in maps.shape[2:])
        return (tall.T @ maps[:, 0] @ wide).flatten(1)


def _tents(length: int, cells: int, like: Tensor) -> Float[Tensor, "length cells"]:
    """Return the weights of bilinear interpolation from cells to pixels."""
    unit = torch.eye(cells).to(like)[:, None]
    return interpolate(unit, length, mode="linear", align_corners=True)[:, 0].T


@hookimpl
def celstack_transforms() -> dict[str, type[Light]]:
    """Let recipes say ``use = "light"``."""
    return {"light": Light}

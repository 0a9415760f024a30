"""Position: place a sprite on the canvas, at most as large as the canvas."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl
from celstack.geometry import softexp

MIN_EXTRA_SCALE = 1e-9
"""Lower bound of e^s, in place of 0, when a sprite covers the whole canvas."""


class Position(Warp):
    """Scale and translation for coarse placement (paper, supplementary C.2).

    The parameters are s and the sprite point (x, y) that the canvas's center maps to, in half
    sprites: source = (1 + e^s) point + shift. In the rest pose the sprite is centered and
    covers half the canvas's longer side; its longer side never exceeds the canvas's.
    """

    num_params = 3
    rest_is_identity = False

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 3"]
    ) -> Float[Tensor, "n m 2"]:
        """Map canvas points to sprite points."""
        shrink = 1 + softexp(params[:, :1])
        return points * shrink[:, None] + params[:, None, 1:]

    def matrix(self, params: Float[Tensor, "n 3"]) -> Float[Tensor, "n 2 3"]:
        """Return the warp as a matrix."""
        shrink = 1 + softexp(params[:, 0])
        scale = torch.diag_embed(torch.stack([shrink, shrink], dim=1))
        return torch.cat([scale, params[:, 1:, None]], dim=2)

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 3"]:
        """Keep size and center; rotations, and sizes above 1, cannot be represented."""
        linear, shift = matrix[:, :, :2], matrix[:, :, 2:]
        shrink = torch.linalg.det(linear).abs().sqrt()[:, None].clamp_min(1.0)
        center = -torch.linalg.solve(linear, shift)[:, :, 0]
        return torch.cat(
            [(shrink - 1).clamp_min(MIN_EXTRA_SCALE).log(), -shrink * center], dim=1
        )

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, position.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Position]]:
    """Let recipes say ``use = "position"``."""
    return {"position": Position}

"""Position: put a sprite somewhere on the canvas, smaller than the canvas."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl
from celstack.geometry.softclip import softexp

LEAST = 1e-9
"""So small a share of the canvas is lost when a sprite covers all of it: no pixel's worth."""


class Position(Warp):
    """Scale and translation for coarse placing (paper, supplementary C.2).

    The parameters are s, and how far right and down the canvas's center looks in the
    sprite, in half sprites: source = (1 + e^s) point + shift. In the rest pose the sprite
    covers half the canvas's longer side, centerd; its longer side never
    exceeds the canvas's.
    """

    num_params = 3
    rest_is_identity = False

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 3"]
    ) -> Float[Tensor, "n m 2"]:
        """Look from the canvas into the sprite."""
        shrink = 1 + softexp(params[:, :1])
        return points * shrink[:, None] + params[:, None, 1:]

    def matrix(self, params: Float[Tensor, "n 3"]) -> Float[Tensor, "n 2 3"]:
        """Return the same map as a matrix."""
        shrink = 1 + softexp(params[:, 0])
        scale = torch.diag_embed(torch.stack([shrink, shrink], dim=1))
        return torch.cat([scale, params[:, 1:, None]], dim=2)

    def place(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 3"]:
        """Keep the size and the center; a turn cannot be followed, nor a size above 1."""
        linear, shift = matrix[:, :, :2], matrix[:, :, 2:]
        shrink = torch.linalg.det(linear).abs().sqrt()[:, None].clamp_min(1.0)
        center = -torch.linalg.solve(linear, shift)[:, :, 0]
        return torch.cat([(shrink - 1).clamp_min(LEAST).log(), -shrink * center], dim=1)

    def browser(self) -> BrowserCode:
        """Read position.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Position]]:
    """Let recipes say ``use = "position"``."""
    return {"position": Position}

"""Similarity: rotate, scale and translate a sprite."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl
from celstack.geometry import softexp


class Similarity(Warp):
    """Rotation, uniform scale and translation (paper, supplementary C.2).

    The parameters are log scale, angle in radians (clockwise on screen), shift
    right and shift down; shifts are in half of the longer side.
    """

    num_params = 4

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 4"]
    ) -> Float[Tensor, "n m 2"]:
        """Undo the translation, then the rotation, then the scale."""
        log_scale, angle, shift = params[:, 0], params[:, 1], params[:, 2:]
        cos, sin = angle.cos(), angle.sin()
        # Points are row vectors, so multiplying by the rotation matrix rotates them back.
        rotation = torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)
        shrink = softexp(-log_scale)[:, None, None]
        return shrink * ((points - shift[:, None]) @ rotation)

    def matrix(self, params: Float[Tensor, "n 4"]) -> Float[Tensor, "n 2 3"]:
        """Return the warp as a matrix."""
        cos, sin = params[:, 1].cos(), params[:, 1].sin()
        back = torch.stack([cos, sin, -sin, cos], dim=-1).view(-1, 2, 2)
        back = softexp(-params[:, 0])[:, None, None] * back
        return torch.cat([back, -back @ params[:, 2:, None]], dim=2)

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 4"]:
        """Keep size, angle and center; anisotropic scale and shear cannot be represented."""
        linear, shift = matrix[:, :, :2], matrix[:, :, 2:]
        log_scale = -0.5 * torch.linalg.det(linear).abs().log()
        angle = torch.atan2(
            linear[:, 0, 1] - linear[:, 1, 0], linear[:, 0, 0] + linear[:, 1, 1]
        )
        center = -torch.linalg.solve(linear, shift)
        return torch.cat([log_scale[:, None], angle[:, None], center[:, :, 0]], dim=1)

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, similarity.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Similarity]]:
    """Let recipes say ``use = "similarity"``."""
    return {"similarity": Similarity}

"""Affine: turn, stretch, shear and shift a sprite."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl


class Affine(Warp):
    """Any map that keeps parallels parallel (paper, supplementary C.2).

    Convention: source = (I + A) point + t. The parameters are the rows of [A | t],
    a b tx c d ty, so that source x = (1 + a) x + b y + tx and source y = c x + (1 + d) y
    + ty. They say where the canvas looks, in half sprites: a positive tx moves the sprite
    left, a positive a makes it narrower.
    """

    num_params = 6

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 6"]
    ) -> Float[Tensor, "n m 2"]:
        """Add to each point what the matrix adds to the identity."""
        matrix = params.view(-1, 2, 3)
        # Points are rows, so the matrix stands transposed on their right.
        return points + points @ matrix[:, :, :2].mT + matrix[:, None, :, 2]

    def matrix(self, params: Float[Tensor, "n 6"]) -> Float[Tensor, "n 2 3"]:
        """Return the same map as a matrix."""
        return params.view(-1, 2, 3) + torch.eye(2, 3).to(params)

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 6"]:
        """Take the identity away from the matrix."""
        return (matrix - torch.eye(2, 3).to(matrix)).flatten(1)

    def browser(self) -> BrowserCode:
        """Read affine.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Affine]]:
    """Let recipes say ``use = "affine"``."""
    return {"affine": Affine}

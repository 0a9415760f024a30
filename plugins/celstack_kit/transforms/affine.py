"""Affine: rotate, scale, shear and translate a sprite."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl


class Affine(Warp):
    """An affine warp (paper, supplementary C.2).

    Convention: source = (I + The) point + t. The parameters are the rows of [The | t],
    a b tx c d ty, so that source x = (1 + a) x + b y + tx and source y = c x + (1 + d) y
    + ty. They map canvas points to sprite points, in half sprites: a positive tx moves the
    sprite left, a positive a makes it narrower.
    """

    num_params = 6

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 6"]
    ) -> Float[Tensor, "n m 2"]:
        """Add the displacement The point + t to each point."""
        matrix = params.view(-1, 2, 3)
        # Points are row vectors, so they are multiplied by the transposed matrix.
        return points + points @ matrix[:, :, :2].mT + matrix[:, None, :, 2]

    def matrix(self, params: Float[Tensor, "n 6"]) -> Float[Tensor, "n 2 3"]:
        """Return the warp as a matrix."""
        return params.view(-1, 2, 3) + torch.eye(2, 3).to(params)

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 6"]:
        """Return the matrix minus the identity."""
        return (matrix - torch.eye(2, 3).to(matrix)).flatten(1)

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, affine.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Affine]]:
    """Let recipes say ``use = "affine"``."""
    return {"affine": Affine}

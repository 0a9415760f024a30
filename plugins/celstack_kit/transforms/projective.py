"""Projective: warp a sprite by a homography."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from celstack import BrowserCode, Warp, hookimpl
from celstack.geometry import clamp_depth


class Projective(Warp):
    """The homography (paper, supplementary C.2).

    Convention: (u, v, z) = (I + beta) (x, y, 1), source = (u / z, v / z). The parameters
    are the rows of the 3 x 3 matrix beta; the first six are those of affine. They map canvas
    points to sprite points, in half sprites.
    """

    num_params = 9

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 9"]
    ) -> Float[Tensor, "n m 2"]:
        """Map homogeneous points, and divide by the third coordinate."""
        beta = params.view(-1, 3, 3)
        columns = points.mT
        moved = beta[:, :, :2] @ columns + beta[:, :, 2:]
        return ((columns + moved[:, :2]) / clamp_depth(1 + moved[:, 2:])).mT

    def matrix(self, params: Float[Tensor, "n 9"]) -> Float[Tensor, "n 3 3"]:
        """Return the warp as a matrix."""
        return params.view(-1, 3, 3) + torch.eye(3).to(params)

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 9"]:
        """Return the matrix minus the identity, with zeros in the third row."""
        return pad((matrix - torch.eye(2, 3).to(matrix)).flatten(1), (0, 3))

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, projective.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Projective]]:
    """Let recipes say ``use = "projective"``."""
    return {"projective": Projective}

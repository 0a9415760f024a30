"""Tps: warp a sprite by a thin-plate spline."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Warp, hookimpl


class Tps(Warp):
    """The thin-plate spline with ``points`` x ``points`` control points (supplementary C.2).

    Convention: the control points form a regular grid over [-1, 1]^2, corners included. The
    parameters are their displacements on the sprite: x for all control points, row by row
    from the top left, then y for all. In between, the map has minimal bending energy.
    """

    spline: Float[Tensor, "q c"]

    def __init__(self, points: Annotated[int, Ge(2)] = 4) -> None:
        super().__init__()
        self.points = points
        self.num_params = 2 * points**2
        # The spline is linear in the displacements, and the control points are fixed: its
        # system is solved here once.
        self.register_buffer("spline", _solve(points), persistent=False)

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n m 2"]:
        """Add the interpolated displacement to each point."""
        controls = params.view(len(params), 2, self.points**2)
        # If all images share the same points, the interpolation weights are computed once.
        shared = points.stride(0) == 0 and len(points) > 0 and not points.requires_grad
        weights = self._weights(points[0] if shared else points)
        return points + (controls @ weights.mT).mT

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, tps.js."""
        return BrowserCode.beside(__file__, points=self.points, spline=self.spline.tolist())

    def _weights(self, points: Float[Tensor, "*n m 2"]) -> Float[Tensor, "*n m c"]:
        """Return the weight of each control point at each point."""
        side = torch.linspace(-1, 1, self.points, dtype=points.dtype, device=points.device)
        return _basis(points, side) @ self.spline.to(points.dtype)


def _solve(points: int) -> Float[Tensor, "q c"]:
    """Return the map from control point values to coefficients of kernels and affine part."""
    side = torch.linspace(-1, 1, points, dtype=torch.float64)
    controls = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1).view(-1, 2)
    above = _basis(controls, side)
    # Side conditions: the kernel coefficients are orthogonal to affine functions.
    below = torch.cat([above[:, -3:].T, above.new_zeros(3, 3)], dim=1)
    system = torch.cat([above, below])
    solution: Tensor = torch.linalg.inv(system)
    return solution[:, :-3].to(torch.get_default_dtype())


def _basis(
    points: Float[Tensor, "*n m 2"], side: Float[Tensor, " p"]
) -> Float[Tensor, "*n m p*p+3"]:
    """Evaluate the kernels d^2 log(d^2) / 2 of all control points, then 1, x and y."""
    across, down = ((points[..., None] - side).square()).unbind(-2)
    squared = (down[..., :, None] + across[..., None, :]).flatten(-2)
    # At a control point the logarithm would be infinite and the gradient NaN.
    kernels = 0.5 * squared * squared.clamp_min(torch.finfo(squared.dtype).tiny).log()
    return torch.cat([kernels, torch.ones_like(points[..., :1]), points], dim=-1)


@hookimpl
def celstack_transforms() -> dict[str, type[Tps]]:
    """Let recipes say ``use = "tps"``."""
    return {"tps": Tps}

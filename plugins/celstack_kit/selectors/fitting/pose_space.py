"""Poses as vectors of the active warps' parameters, and their Jacobians."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import Decomposer, Warp
from celstack.model import TransformChain

DIFFERENCE_STEP = 1e-2
"""Step of finite differences; most warps are linear in their parameters."""


class PoseSpace:
    """The parameters of all active warps of sprites, then of layers, as one vector.

    All other parameters, and those of inactive warps, stay 0.
    """

    def __init__(self, decomposer: Decomposer) -> None:
        self.chains = (decomposer.sprite_chain, decomposer.layer_chain)
        self.sizes = [chain.num_params for chain in self.chains]
        free = torch.cat([_free_params(chain) for chain in self.chains])
        self.slots = free.nonzero()[:, 0]
        self.count = len(self.slots)

    def to_params(
        self, pose: Float[Tensor, "n p"]
    ) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]]:
        """Return sprite and layer parameters; all but those of active warps are 0."""
        params = pose.new_zeros(len(pose), sum(self.sizes))
        params[:, self.slots] = pose
        of_sprite, of_layer = params.split(self.sizes, dim=1)
        return of_sprite, of_layer

    def pull(
        self, points: Float[Tensor, "m 2"], pose: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n m 2"]:
        """Map canvas points to sprite points."""
        of_sprite, of_layer = self.to_params(pose)
        sprite, layer = self.chains
        return sprite.pull(layer.pull(points.expand(len(pose), -1, -1), of_layer), of_sprite)

    def jacobian(
        self, points: Float[Tensor, "m 2"], pose: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n 2 p m"]:
        """Return the derivatives of sprite points by parameters, from finite differences."""
        pulled = self.pull(points, pose)
        steps = DIFFERENCE_STEP * torch.eye(self.count).to(pose)
        moved = [(self.pull(points, pose + step) - pulled).mT for step in steps]
        return torch.stack(moved, dim=2) / DIFFERENCE_STEP


class PointWarp:
    """Maps fixed canvas points to sprite points, for many poses.

    If the map is linear in the pose, as for most warps, its Jacobian is computed once.
    """

    def __init__(self, space: PoseSpace, points: Float[Tensor, "m 2"]) -> None:
        self.space, self.points = space, points
        rest = points.new_zeros(1, space.count)
        self.rest = space.pull(points, rest)
        self.constant_jacobian: Float[Tensor, "1 2 p m"] | None = None
        if space.count:
            jacobian = space.jacobian(points, rest)
            some = 0.3 / torch.arange(2.0, space.count + 2.0).to(rest)[None]
            linear = self._linear_map(some, jacobian)
            if torch.allclose(linear, space.pull(points, some), atol=1e-4):
                self.constant_jacobian = jacobian

    def pull(self, pose: Float[Tensor, "n p"]) -> Float[Tensor, "n m 2"]:
        """Return the sprite points at each pose."""
        if self.constant_jacobian is None:
            return self.space.pull(self.points, pose)
        return self._linear_map(pose, self.constant_jacobian)

    def jacobian(self, pose: Float[Tensor, "n p"]) -> Float[Tensor, "n_or_1 2 p m"]:
        """Return the derivatives by parameters: one for all poses if the map is linear."""
        if self.constant_jacobian is None:
            return self.space.jacobian(self.points, pose)
        return self.constant_jacobian

    def _linear_map(
        self, pose: Float[Tensor, "n p"], jacobian: Float[Tensor, "1 2 p m"]
    ) -> Float[Tensor, "n m 2"]:
        moves = pose @ jacobian[0].transpose(0, 1).flatten(1)
        return self.rest + moves.unflatten(1, (2, -1)).mT


def _free_params(chain: TransformChain) -> Tensor:
    """Return which parameters of a chain belong to active warps."""
    flags = [
        isinstance(transform, Warp) and working
        for transform, working in zip(chain, chain.active, strict=True)
        for _ in range(transform.num_params)
    ]
    return torch.tensor(flags, dtype=torch.bool, device=chain.activity.device)

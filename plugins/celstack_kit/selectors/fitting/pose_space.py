"""Poses: the parameters of all warps at work, as one vector, and what they move."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import Decomposer, Warp
from celstack.model import TransformChain

NUDGE = 1e-2
"""How far parameters are moved to see what they move: most warps are linear in them."""


class Poses:
    """Where the canvas looks in sprites, told by the parameters of warps alone.

    The warps are those of sprites, then those of layers; what is not at work rests.
    """

    def __init__(self, decomposer: Decomposer) -> None:
        self.chains = (decomposer.sprite_chain, decomposer.layer_chain)
        self.sizes = [chain.num_params for chain in self.chains]
        moving = torch.cat([_moving(chain) for chain in self.chains])
        self.slots = moving.nonzero()[:, 0]
        self.count = len(self.slots)

    def spread(
        self, pose: Float[Tensor, "n p"]
    ) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]]:
        """Return the parameters of sprites, and of layers; all but those of warps are 0."""
        params = pose.new_zeros(len(pose), sum(self.sizes))
        params[:, self.slots] = pose
        of_sprite, of_layer = params.split(self.sizes, dim=1)
        return of_sprite, of_layer

    def pull(
        self, points: Float[Tensor, "m 2"], pose: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n m 2"]:
        """Return where points of the canvas look."""
        of_sprite, of_layer = self.spread(pose)
        sprite, layer = self.chains
        return sprite.pull(layer.pull(points.expand(len(pose), -1, -1), of_layer), of_sprite)

    def slopes(
        self, points: Float[Tensor, "m 2"], pose: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n 2 p m"]:
        """Return how far points go for each parameter, as a slope, from where they look."""
        pulled = self.pull(points, pose)
        nudges = NUDGE * torch.eye(self.count).to(pose)
        nudged = [(self.pull(points, pose + nudge) - pulled).mT for nudge in nudges]
        return torch.stack(nudged, dim=2) / NUDGE


class Outlook:
    """Looks from many poses at the same points; at little cost where warps are linear.

    Most are: what a parameter moves then depends on no other, and is measured once.
    """

    def __init__(self, poses: Poses, points: Float[Tensor, "m 2"]) -> None:
        self.poses, self.points = poses, points
        rest = points.new_zeros(1, poses.count)
        self.rest = poses.pull(points, rest)
        self.fixed: Float[Tensor, "1 2 p m"] | None = None
        if poses.count:
            slopes = poses.slopes(points, rest)
            some = 0.3 / torch.arange(2.0, poses.count + 2.0).to(rest)[None]
            if torch.allclose(self._along(some, slopes), poses.pull(points, some), atol=1e-4):
                self.fixed = slopes

    def look(self, pose: Float[Tensor, "n p"]) -> Float[Tensor, "n m 2"]:
        """Return where points look from poses."""
        if self.fixed is None:
            return self.poses.pull(self.points, pose)
        return self._along(pose, self.fixed)

    def slopes(self, pose: Float[Tensor, "n p"]) -> Float[Tensor, "n_or_1 2 p m"]:
        """Return how far points go for each parameter; once, if that is so for all poses."""
        return self.poses.slopes(self.points, pose) if self.fixed is None else self.fixed

    def _along(
        self, pose: Float[Tensor, "n p"], slopes: Float[Tensor, "1 2 p m"]
    ) -> Float[Tensor, "n m 2"]:
        moves = pose @ slopes[0].transpose(0, 1).flatten(1)
        return self.rest + moves.unflatten(1, (2, -1)).mT


def _moving(chain: TransformChain) -> Tensor:
    """Tell which parameters of a chain belong to warps at work."""
    flags = [
        isinstance(transform, Warp) and working
        for transform, working in zip(chain, chain.active, strict=True)
        for _ in range(transform.num_params)
    ]
    return torch.tensor(flags, dtype=torch.bool, device=chain.activity.device)

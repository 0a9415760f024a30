"""A chain of transforms: pixels are changed in order, points pulled, nothing sampled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from celstack.geometry.homography import compose_matrices, factor_out
from celstack.interfaces.transform import Transform, Warp


class TransformChain(nn.Module):
    """Several transforms, one after the other, with their parameters side by side."""

    activity: Float[Tensor, " P"]

    def __init__(self, transforms: Sequence[Transform]) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        # The same as activity, where asking costs an accelerator nothing.
        self._active = [True] * len(transforms)
        self.register_load_state_dict_post_hook(_read_activity)

    def prepare(self, channels: int) -> None:
        """Prepare every transform and let all of them work."""
        for transform in self:
            transform.prepare(channels)
        self.register_buffer("activity", torch.ones(self.num_params))
        self._active = [True] * len(self.transforms)

    def __iter__(self) -> Iterator[Transform]:
        return iter(self.transforms)  # type: ignore[arg-type]

    @property
    def num_params(self) -> int:
        """Count the parameters of all transforms together."""
        return sum(transform.num_params for transform in self)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Count the parameters of each transform."""
        return tuple(transform.num_params for transform in self)

    def has_warp(self) -> bool:
        """Tell whether any transform in use moves pixels."""
        pairs = zip(self, self._active, strict=True)
        return any(isinstance(t, Warp) and _in_use(t, active) for t, active in pairs)

    def activate(self, names: Collection[str] | None) -> None:
        """Let only the named transforms work; the others stay in their rest pose.

        A transform at rest is not called, and no gradient reaches its parameters: an
        optimizer that gets zeros instead of nothing would let its weights decay.
        """
        self._active = [t.name in names if names is not None else True for t in self]
        active = [
            float(active)
            for active, size in zip(self._active, self.sizes, strict=True)
            for _ in range(size)
        ]
        self.activity.copy_(torch.tensor(active))

    @property
    def active(self) -> list[bool]:
        """Tell which transforms work; the others stay in their rest pose."""
        return list(self._active)

    def change_pixels(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Apply the transforms that are not warps, first to last."""
        for transform, own in self._steps(params):
            if not isinstance(transform, Warp):
                images = transform(images, own)
        return images

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n m 2"]:
        """Trace canvas points back to the sprite: the last warp is undone first."""
        for transform, own in reversed(self._steps(params)):
            if isinstance(transform, Warp):
                points = transform.pull(points, own)
        return points

    def matrix(self, params: Float[Tensor, "n P"]) -> Float[Tensor, "n r 3"] | None:
        """Return the same map as ``pull`` as one matrix, or None if it is not one."""
        result = torch.eye(2, 3).to(params).expand(len(params), -1, -1)
        for transform, own in reversed(self._steps(params)):
            if isinstance(transform, Warp):
                matrix = transform.matrix(own)
                if matrix is None:
                    return None
                result = compose_matrices(matrix, result)
        return result

    def params_from_matrix(
        self, matrix: Float[Tensor, "n 2 3"]
    ) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n 2 3"]]:
        """Follow a map with the warps at work; return what is left of it, too.

        The last warp is the first to look: what it cannot do is left to those before it.
        """
        params = matrix.new_zeros(len(matrix), self.num_params)
        for transform, own, active in reversed(list(self._slots(params))):
            if isinstance(transform, Warp):
                placed = transform.params_from_matrix(matrix) if active else None
                if placed is not None:
                    own.copy_(placed)
                done = transform.matrix(own)
                # What is no matrix cannot be told where to look, and rests.
                matrix = matrix if done is None else factor_out(matrix, done[:, :2])
        return params, matrix

    def precompose(
        self, params: Float[Tensor, "n P"], change: Float[Tensor, "n 2 3"]
    ) -> Float[Tensor, "n P"] | None:
        """Let the canvas look through another map first; None if no warp at work can.

        The last warp that can be placed follows, as far as it can; the others stay.
        """
        params = params.clone()
        for transform, own, active in reversed(list(self._slots(params))):
            matrix = transform.matrix(own) if active and isinstance(transform, Warp) else None
            if isinstance(transform, Warp) and matrix is not None:
                flat = matrix[:, :2] / (matrix[:, 2:, 2:] if matrix.shape[1] == 3 else 1.0)
                placed = transform.params_from_matrix(compose_matrices(flat, change))
                if placed is not None:
                    own.copy_(placed)
                    return params
        return None

    def tint(
        self, gains: Float[Tensor, "n C"], offsets: Float[Tensor, "n C"] | None = None
    ) -> Float[Tensor, "n P"] | None:
        """Let the first transform at work that can multiply colours by gains, add offsets."""
        return self.recolor(gains.new_zeros(len(gains), self.num_params), gains, offsets)

    def recolor(
        self,
        params: Float[Tensor, "n P"],
        gains: Float[Tensor, "n C"],
        offsets: Float[Tensor, "n C"] | None = None,
    ) -> Float[Tensor, "n P"] | None:
        """Do as ``tint`` does, and leave all other transforms as they are."""
        params = params.clone()
        for transform, own, active in self._slots(params):
            tinted = transform.tint(gains, offsets) if active else None
            if tinted is not None:
                own.copy_(tinted)
                return params
        return None

    def _slots(
        self, params: Float[Tensor, "n P"]
    ) -> Iterator[tuple[Transform, Float[Tensor, "n p"], bool]]:
        """Pair each transform with its part of the parameters, and whether it is at work."""
        yield from zip(self, params.split(self.sizes, dim=1), self._active, strict=True)

    def _steps(self, params: Float[Tensor, "n P"]) -> list[tuple[Transform, Tensor]]:
        """List the transforms in use with their parameters, zero for the rest pose."""
        return [
            (transform, own if active else torch.zeros_like(own))
            for transform, own, active in self._slots(params)
            if _in_use(transform, active)
        ]


def _in_use(transform: Transform, active: bool) -> bool:
    """Tell whether a transform works, or has a rest pose that changes something."""
    return active or not transform.rest_is_identity


def _read_activity(chain: nn.Module, _: object) -> None:
    """Find out from loaded weights which transforms are at work."""
    assert isinstance(chain, TransformChain)
    if not hasattr(chain, "activity"):
        return  # not prepared: loading says itself what does not fit
    parts = chain.activity.split(chain.sizes)
    chain._active = [bool(activity.all()) for activity in parts]

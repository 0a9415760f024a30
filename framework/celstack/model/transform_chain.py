"""TransformChain: several transforms of sprites, layers or backgrounds in sequence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from celstack.errors import CelstackError
from celstack.geometry.homography import compose_matrices, factor_out
from celstack.interfaces.transform import Transform, Warp
from celstack.text import format_value


class TransformChain(nn.Module):
    """Transforms that are applied one after the other, with their parameters concatenated.

    Transforms of pixel values are applied by ``change_pixels``. Warps are composed as maps of
    points, by ``pull`` or ``matrix``, so that images are sampled only once.
    """

    activity: Float[Tensor, " P"]

    def __init__(self, transforms: Sequence[Transform]) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        # A copy of activity on the host: reading it does not synchronize with a device.
        self._active = [True] * len(transforms)
        self._learned: list[list[nn.Parameter]] = []
        self.register_load_state_dict_post_hook(_read_activity)

    def prepare(self, channels: int, canvas: tuple[int, int] | None = None) -> None:
        """Prepare every transform and activate all of them."""
        for transform in self:
            transform.prepare(channels, canvas=canvas)
            count = getattr(transform, "num_params", None)
            if type(count) is not int or count < 0:
                found = "is missing" if count is None else f"is {format_value(count)}"
                text = "it is the number of parameters, a whole number, set by the class or in"
                raise CelstackError(f"{transform.name}: num_params {found}; {text} prepare")
        self.register_buffer("activity", torch.ones(self.num_params))
        self._active = [True] * len(self.transforms)
        self._learned = [[p for p in t.parameters() if p.requires_grad] for t in self]

    def __iter__(self) -> Iterator[Transform]:
        return iter(self.transforms)  # type: ignore[arg-type]

    @property
    def num_params(self) -> int:
        """The number P of parameters of all transforms together."""
        return sum(transform.num_params for transform in self)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of parameters of each transform."""
        return tuple(transform.num_params for transform in self)

    def has_warp(self) -> bool:
        """Return whether any transform that is applied is a warp."""
        pairs = zip(self, self._active, strict=True)
        return any(isinstance(t, Warp) and _in_use(t, active) for t, active in pairs)

    def activate(self, names: Collection[str] | None) -> None:
        """Activate the named transforms alone, or all if None.

        Inactive transforms stay in their rest pose. No gradient reaches their parameters, nor
        weights of their own: with zeros instead of None an optimizer would still apply weight
        decay.
        """
        self._active = [t.name in names if names is not None else True for t in self]
        active = [
            float(active)
            for active, size in zip(self._active, self.sizes, strict=True)
            for _ in range(size)
        ]
        self.activity.copy_(torch.tensor(active))
        self._freeze_inactive()

    def _freeze_inactive(self) -> None:
        for own, active in zip(self._learned, self._active, strict=True):
            for parameter in own:
                parameter.requires_grad_(active)

    @property
    def active(self) -> list[bool]:
        """Which transforms are active; the others stay in their rest pose."""
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
        """Map points of the canvas to the sprite: the last warp is inverted first."""
        for transform, own in reversed(self._steps(params)):
            if isinstance(transform, Warp):
                points = transform.pull(points, own)
        return points

    def matrix(self, params: Float[Tensor, "n P"]) -> Float[Tensor, "n r 3"] | None:
        """Return the map of ``pull`` as a matrix; None if it is not a homography."""
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
        """Return the parameters whose ``matrix`` is nearest to this one.

        Starts with the last active warp; what it cannot express is left to those before it.

        Returns:
            The parameters, and the map that remains: identity if the solution is exact.
        """
        params = matrix.new_zeros(len(matrix), self.num_params)
        for index, (transform, own, active) in reversed(list(enumerate(self._slots(params)))):
            if isinstance(transform, Warp):
                placed = transform.params_from_matrix(matrix) if active else None
                if placed is not None:
                    params, own = self._replace(params, index, placed), placed
                done = transform.matrix(own)
                # A warp without a matrix cannot be solved for, and stays at rest.
                matrix = matrix if done is None else factor_out(matrix, done[:, :2])
        return params, matrix

    def precompose(
        self, params: Float[Tensor, "n P"], change: Float[Tensor, "n 2 3"]
    ) -> Float[Tensor, "n P"] | None:
        """Return parameters whose map applies ``change`` to canvas points first.

        Only the last active warp that implements ``params_from_matrix`` changes, as far as it
        can express the result.

        Returns:
            The new parameters; None if there is no such warp.
        """
        for index, (transform, own, active) in reversed(list(enumerate(self._slots(params)))):
            matrix = transform.matrix(own) if active and isinstance(transform, Warp) else None
            if isinstance(transform, Warp) and matrix is not None:
                flat = matrix[:, :2] / (matrix[:, 2:, 2:] if matrix.shape[1] == 3 else 1.0)
                placed = transform.params_from_matrix(compose_matrices(flat, change))
                if placed is not None:
                    return self._replace(params, index, placed)
        return None

    def tint(
        self, gains: Float[Tensor, "n C"], offsets: Float[Tensor, "n C"] | None = None
    ) -> Float[Tensor, "n P"] | None:
        """Return parameters, otherwise zero, that multiply colors by gains and add offsets.

        None if no active transform can.
        """
        return self.recolor(gains.new_zeros(len(gains), self.num_params), gains, offsets)

    def params_from_target(
        self,
        images: Float[Tensor, "n C h w"],
        targets: Float[Tensor, "n C h w"],
        weights: Float[Tensor, "n 1 h w"],
    ) -> Float[Tensor, "n P"] | None:
        """Return parameters, otherwise zero, that bring images near to targets.

        None if no active transform can be solved for its parameters.
        """
        params = images.new_zeros(len(images), self.num_params)
        for index, (transform, _, active) in enumerate(self._slots(params)):
            found = transform.params_from_target(images, targets, weights) if active else None
            if found is not None:
                return self._replace(params, index, found)
        return None

    def recolor(
        self,
        params: Float[Tensor, "n P"],
        gains: Float[Tensor, "n C"],
        offsets: Float[Tensor, "n C"] | None = None,
    ) -> Float[Tensor, "n P"] | None:
        """Return parameters with those of one transform replaced as by ``tint``.

        None if no active transform can multiply colors by gains and add offsets.
        """
        for index, (transform, _, active) in enumerate(self._slots(params)):
            tinted = transform.tint(gains, offsets) if active else None
            if tinted is not None:
                return self._replace(params, index, tinted)
        return None

    def _replace(
        self, params: Float[Tensor, "n P"], index: int, own: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n P"]:
        """Return parameters with those of one transform replaced.

        Not in place: the parameters may be predictions, which carry gradients.
        """
        parts = list(params.split(self.sizes, dim=1))
        parts[index] = own.to(params).expand_as(parts[index])
        return torch.cat(parts, dim=1)

    def _slots(
        self, params: Float[Tensor, "n P"]
    ) -> Iterator[tuple[Transform, Float[Tensor, "n p"], bool]]:
        """Yield each transform with a view of its parameters, and whether it is active."""
        yield from zip(self, params.split(self.sizes, dim=1), self._active, strict=True)

    def _steps(self, params: Float[Tensor, "n P"]) -> list[tuple[Transform, Tensor]]:
        """List the transforms to apply with their parameters, zero for inactive ones."""
        return [
            (transform, own if active else torch.zeros_like(own))
            for transform, own, active in self._slots(params)
            if _in_use(transform, active)
        ]


def _in_use(transform: Transform, active: bool) -> bool:
    """Return whether a transform is active, or its rest pose is not the identity."""
    return active or not transform.rest_is_identity


def _read_activity(chain: nn.Module, _: object) -> None:
    """Restore from loaded weights which transforms are active."""
    assert isinstance(chain, TransformChain)
    if not hasattr(chain, "activity"):
        return  # not prepared: load_state_dict reports the unexpected keys itself
    parts = chain.activity.split(chain.sizes)
    chain._active = [bool(activity.all()) for activity in parts]
    chain._freeze_inactive()

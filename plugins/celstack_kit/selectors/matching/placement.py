"""Placing: from poses to the transforms' own parameters.

Convention: a pose is (x, y, log size, angle). The sprite's center is x pixels right of the
canvas's left edge and y below its top edge; at log size 0 a pixel of the sprite is as large as
one of the canvas; angles are in radians, clockwise on screen.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack import CelstackError, Decomposer, Warp

EXACT = 1e-4
"""Maps that differ by less put a sprite at the same pixels."""


class Placing:
    """Tells the transforms of a model where sprites are, and what colors they have."""

    def __init__(self, decomposer: Decomposer, size: tuple[int, int]) -> None:
        self.layer, self.sprite = decomposer.layer_chain, decomposer.sprite_chain
        self.decomposer = decomposer
        self.size, self.canvas = size, decomposer.canvas
        like = torch.zeros((), device=self.layer.activity.device)
        self.tints = tint(decomposer, like.new_ones(1, decomposer.channels)) is not None
        self.turns = self._follows(like.new_tensor([0.0, 0.0, -0.1, 1.0]))
        if not self._follows(like.new_zeros(4)):
            (height, width), (tall, wide) = size, self.canvas
            raise CelstackError(
                f"sprites of {height} x {width} pixels cannot be put on a canvas of "
                f"{tall} x {wide} as large as they are; make them smaller than the canvas, "
                "or add a transform that can place them, such as a position"
            )

    def params(
        self, pose: Float[Tensor, "n 4"], gains: Float[Tensor, "n C"]
    ) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]]:
        """Return the parameters of sprites, and of layers, that put sprites there."""
        of_layer, rest = self.layer.place(self._matrix(pose))
        of_sprite, _ = self.sprite.place(rest)
        tinted = tint(self.decomposer, gains)
        if tinted is None:
            return of_sprite, of_layer
        return of_sprite + tinted[0], of_layer + tinted[1]

    def corner(self, row: Int[Tensor, " n"], column: Int[Tensor, " n"]) -> Float[Tensor, "n 4"]:
        """Return the pose of sprites whose first pixel is in this row and column."""
        height, width = self.size
        center = torch.stack([column + width / 2, row + height / 2], dim=1)
        return pad(center, (0, 2))

    def _follows(self, pose: Float[Tensor, " 4"]) -> bool:
        """Tell whether the transforms can put a sprite there."""
        _, rest = self.sprite.place(self.layer.place(self._matrix(pose[None]))[1])
        return torch.allclose(rest, torch.eye(2, 3).to(rest), atol=EXACT)

    def _matrix(self, pose: Float[Tensor, "n 4"]) -> Float[Tensor, "n 2 3"]:
        """Return where the canvas looks if sprites are there, as a matrix."""
        x, y, log_size, angle = pose.unbind(1)
        back = turned_back(angle) * (-log_size).exp()[:, None, None] / max(self.size)
        # Points are in units of half the longer side (celstack.geometry.sampling).
        middle = torch.stack([self.canvas[1] - 2 * x, self.canvas[0] - 2 * y], dim=1)
        return torch.cat([back * max(self.canvas), back @ middle[:, :, None]], dim=2)


def tint(
    decomposer: Decomposer,
    gains: Float[Tensor, "n C"],
    offsets: Float[Tensor, "n C"] | None = None,
) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]] | None:
    """Return the parameters of sprites, and of layers, that give colors; None: none can."""
    of_sprite, of_layer = decomposer.sprite_chain, decomposer.layer_chain
    tinted = of_layer.tint(gains, offsets)
    if tinted is not None:
        return gains.new_zeros(len(gains), of_sprite.num_params), tinted
    tinted = of_sprite.tint(gains, offsets)
    if tinted is not None:
        return tinted, gains.new_zeros(len(gains), of_layer.num_params)
    return None


def can_place(decomposer: Decomposer) -> bool:
    """Tell whether any transform can be told where a sprite is."""
    somewhere = torch.eye(2, 3)[None]
    transforms = (*decomposer.layer_chain, *decomposer.sprite_chain)
    warps = [transform for transform in transforms if isinstance(transform, Warp)]
    return any(warp.place(somewhere) is not None for warp in warps)


def turned_back(angle: Float[Tensor, " n"]) -> Float[Tensor, "n 2 2"]:
    """Return the matrices that undo a turn."""
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos, sin, -sin, cos], dim=1).view(-1, 2, 2)

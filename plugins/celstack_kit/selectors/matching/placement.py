"""Map poses to the parameters of a model's transforms.

Convention: a pose is (x, y, log size, angle) or (x, y, log size, angle, stretch, shear). The
sprite's center is x pixels right of the canvas's left edge and y below its top edge; at log
size 0 a pixel of the sprite is as large as one of the canvas; angles are in radians, clockwise
on screen. Before it is turned, the sprite is widened by the factor e^stretch and flattened by
the same, then sheared: points move right by shear times their distance below the center.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack import CelstackError, Decomposer, Warp
from celstack_kit.selector_support.tinting import tint_params

MATRIX_TOLERANCE = 1e-4
"""Affine maps whose entries differ by less place a sprite at the same pixels."""


class Placement:
    """Computes the transform parameters that give sprites a pose and colors.

    Args:
        decomposer: The model.
        size: Height and width of sprites.
        stretch: Whether sprites may be stretched and sheared, if the transforms can.

    Raises:
        CelstackError: The transforms cannot place sprites of this size (height, width) at
            their own scale.
    """

    def __init__(
        self, decomposer: Decomposer, size: tuple[int, int], stretch: bool = False
    ) -> None:
        self.layer, self.sprite = decomposer.layer_chain, decomposer.sprite_chain
        self.decomposer = decomposer
        self.size, self.canvas = size, decomposer.canvas
        like = torch.zeros((), device=self.layer.activity.device)
        ones = like.new_ones(1, decomposer.channels)
        self.can_tint = tint_params(decomposer, ones) is not None
        self.can_shift_colors = tint_params(decomposer, ones, ones) is not None
        stretched = like.new_tensor([0.0, 0.0, 0.0, 0.0, 0.1, 0.1])
        self.pose_size = 6 if stretch and self._can_represent(stretched) else 4
        if not self._can_represent(like.new_zeros(4)):
            (height, width), (tall, wide) = size, self.canvas
            raise CelstackError(
                f"sprites of {height} x {width} pixels cannot be put on a canvas of "
                f"{tall} x {wide} as large as they are; make them smaller than the canvas, "
                "or add a transform that can place them, such as a position"
            )

    def params(
        self, pose: Float[Tensor, "n p"], tint: Float[Tensor, "n 2 C"]
    ) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]]:
        """Return the sprite and layer parameters for poses, color gains and color offsets."""
        of_layer, rest = self.layer.params_from_matrix(self._matrix(pose))
        of_sprite, _ = self.sprite.params_from_matrix(rest)
        offsets = tint[:, 1] if self.can_shift_colors else None
        tinted = tint_params(self.decomposer, tint[:, 0], offsets)
        if tinted is None:
            return of_sprite, of_layer
        return of_sprite + tinted[0], of_layer + tinted[1]

    def pose_at_corner(
        self, row: Int[Tensor, " n"], column: Int[Tensor, " n"]
    ) -> Float[Tensor, "n 4"]:
        """Return the unscaled, unrotated pose whose top left pixel is at row and column."""
        height, width = self.size
        center = torch.stack([column + width / 2, row + height / 2], dim=1)
        return pad(center, (0, 2))

    def _can_represent(self, pose: Float[Tensor, " p"]) -> bool:
        """Return whether the transforms reproduce a pose exactly."""
        _, rest = self.sprite.params_from_matrix(
            self.layer.params_from_matrix(self._matrix(pose[None]))[1]
        )
        return torch.allclose(rest, torch.eye(2, 3).to(rest), atol=MATRIX_TOLERANCE)

    def _matrix(self, pose: Float[Tensor, "n p"]) -> Float[Tensor, "n 2 3"]:
        """Return the affine maps from canvas points to sprite points."""
        x, y = pose[:, :2].unbind(1)
        back = inverse_linear(pose, (-pose[:, 2]).exp()) / max(self.size)
        # Points are in units of half the longer side (celstack.geometry.sampling).
        middle = torch.stack([self.canvas[1] - 2 * x, self.canvas[0] - 2 * y], dim=1)
        return torch.cat([back * max(self.canvas), back @ middle[:, :, None]], dim=2)


def supports_placement(decomposer: Decomposer) -> bool:
    """Return whether any transform can compute its parameters from an affine map."""
    identity = torch.eye(2, 3)[None]
    transforms = (*decomposer.layer_chain, *decomposer.sprite_chain)
    warps = [transform for transform in transforms if isinstance(transform, Warp)]
    return any(warp.params_from_matrix(identity) is not None for warp in warps)


def inverse_rotation(angle: Float[Tensor, " n"]) -> Float[Tensor, "n 2 2"]:
    """Return the matrices that rotate column vectors by -angle."""
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos, sin, -sin, cos], dim=1).view(-1, 2, 2)


def inverse_linear(
    pose: Float[Tensor, "n p"], scale: Float[Tensor, " n"]
) -> Float[Tensor, "n 2 2"]:
    """Return the matrices that undo rotation, shear and stretch, and multiply by a scale."""
    back = inverse_rotation(pose[:, 3]) * scale[:, None, None]
    if pose.shape[1] == 4:
        return back
    stretch, shear = pose[:, 4], pose[:, 5]
    narrow, zero = (-stretch).exp(), torch.zeros_like(stretch)
    undo = torch.stack([narrow, -narrow * shear, zero, 1 / narrow], dim=1).view(-1, 2, 2)
    return undo @ back

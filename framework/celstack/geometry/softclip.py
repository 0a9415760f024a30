"""Values kept in range with gradients kept alive: softclip and softexp."""

import torch
from jaxtyping import Float
from torch import Tensor

SLOPE = 0.01
MAX_EXPONENT = 8.0


def softclip(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Clip to [0, 1], with a small slope outside (paper, supplementary C.3)."""
    # The small slope keeps gradients alive where a plain clamp would stop them.
    return torch.lerp(values, values.clamp(0.0, 1.0), 1.0 - SLOPE)


def softexp(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Return e^x, continued along its tangent beyond 8, so that it cannot overflow."""
    bounded = values.clamp_max(MAX_EXPONENT)
    # At e^8 a sprite is smaller than a pixel of any canvas below 2981, so no picture tells
    # the difference. e^89 would be infinite, infinity times zero no number, and the run
    # dead; and where a plain clamp would stop gradients, the tangent leads back.
    return bounded.exp() * (1 + values - bounded)

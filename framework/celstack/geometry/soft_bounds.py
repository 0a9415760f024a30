"""Bounds that keep gradients: softclip and softexp."""

import torch
from jaxtyping import Float
from torch import Tensor

SOFTCLIP_SLOPE = 0.01
"""The slope of ``softclip`` outside [0, 1]."""
MAX_EXPONENT = 8.0
"""Where ``softexp`` becomes linear."""


def softclip(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Clip to [0, 1], with a small slope outside (paper, supplementary C.3)."""
    # The small slope keeps gradients alive where a plain clamp would stop them.
    return torch.lerp(values, values.clamp(0.0, 1.0), 1.0 - SOFTCLIP_SLOPE)


def softexp(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Return e^x, continued by its tangent for x > 8, so that it cannot overflow."""
    bounded = values.clamp_max(MAX_EXPONENT)
    # A sprite scaled by e^-8 is smaller than a pixel of any canvas below 2981, so no image
    # shows the difference. e^89 is infinite in float32, and infinity times zero is NaN, which
    # would end the run. A plain clamp would stop gradients; the tangent leads back.
    return bounded.exp() * (1 + values - bounded)

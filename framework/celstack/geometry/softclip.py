"""The paper's softclip (supplementary C.3)."""

import torch
from jaxtyping import Float
from torch import Tensor

SLOPE = 0.01


def softclip(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Clip to [0, 1], with a small slope outside."""
    # The small slope keeps gradients alive where a plain clamp would stop them.
    return torch.lerp(values, values.clamp(0.0, 1.0), 1.0 - SLOPE)

"""Images packed for a page: precise enough to render from, and small."""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

STEP = 2.0**-11
"""Values are told in steps of this size: an eighth of a step of a picture of 8 bits."""
LEVELS = 2**16


def pack(images: Float[Tensor, "K D h w"]) -> dict[str, Any]:
    """Pack images as text.

    Neither colours nor masks are bounded, so every plane has its own least value, ``low``,
    and ``step``, which is larger where a plane reaches too far for 16 bits. What is
    packed are the differences along rows: first all their high bytes, then all low ones.
    """
    values = images.detach().double().cpu().numpy()
    low, high = values.min(axis=(2, 3)), values.max(axis=(2, 3))
    step = np.maximum(STEP, (high - low) / (LEVELS - 1))
    scaled = (values - low[:, :, None, None]) / step[:, :, None, None]
    levels = np.rint(scaled).astype(np.uint16)
    # Differences wrap around, and so do their sums.
    change = np.diff(levels, axis=3, prepend=np.zeros_like(levels[..., :1]))
    planes = np.stack([change >> 8, change & 255]).astype(np.uint8)
    return {
        "shape": list(images.shape),
        "low": low.flatten().tolist(),
        "step": step.flatten().tolist(),
        "data": b64encode(zlib.compress(planes.tobytes())).decode("ascii"),
    }

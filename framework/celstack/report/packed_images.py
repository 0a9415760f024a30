"""Packed images: a compact encoding for pages, precise enough to render from."""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

MIN_STEP = 2.0**-11
"""The quantization step: an eighth of that of an 8-bit picture."""
LEVELS = 2**16


def pack_images(images: Float[Tensor, "K D h w"]) -> dict[str, Any]:
    """Encode images as a dictionary for JSON.

    Neither colors nor masks are bounded, so every plane has its own minimum, ``low``, and
    quantization ``step``, which is larger if the range of the plane exceeds 16 bits. The
    data are differences along rows: first all their high bytes, then all low bytes.
    """
    values = images.detach().double().cpu().numpy()
    low, high = values.min(axis=(2, 3)), values.max(axis=(2, 3))
    step = np.maximum(MIN_STEP, (high - low) / (LEVELS - 1))
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

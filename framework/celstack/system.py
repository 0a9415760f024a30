"""Which device to compute on."""

from __future__ import annotations

import torch

from celstack.errors import CelstackError


def find_device(name: str) -> torch.device:
    """Return the device of this name, or the best there is for 'auto'."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    # Backends that are not there fail in many ways, a missing module among them.
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CelstackError(f"--device {name}: cannot be used here: {reason}") from error
    if device.type == "meta":
        raise CelstackError(f"--device {name}: cannot be used here: it computes nothing")
    return device

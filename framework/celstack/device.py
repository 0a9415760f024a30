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
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise CelstackError(f"--device {name}: cannot be used here: {reason}") from error
    return device

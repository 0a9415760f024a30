"""The machine: its devices, its versions, and how its C library keeps memory."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError

if TYPE_CHECKING:
    import torch

PACKAGES = ("celstack", "torch", "torchvision", "numpy", "scipy", "numba")
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's mallopt(3)
TRIM_BYTES = 2**31 - 1
MMAP_BYTES = 2**25
TOP_PAD_BYTES = 2**29
"""How much is asked for at a time, so that there is room for the largest pieces, too: these
would go back to the system by themselves. What is not used costs nothing."""


def find_device(name: str) -> torch.device:
    """Return the device of this name, or the best there is for 'auto'."""
    import torch

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


def keep_memory() -> None:
    """Ask the C library not to give freed memory back to the system at once.

    Every step frees and takes hundreds of megabytes. Where they went back to the system in
    between, each of their pages would have to be found again: 10 to 20 percent of the step's
    time. Does nothing where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, MMAP_BYTES)
        mallopt(TOP_PAD, TOP_PAD_BYTES)
        mallopt(TRIM_THRESHOLD, TRIM_BYTES)


def environment() -> dict[str, Any]:
    """Describe the machine and the versions that matter."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
        "command": sys.argv,
    }

"""The machine: devices, versions of packages, and settings of the C allocator."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError

if TYPE_CHECKING:
    import torch

REPORTED_PACKAGES = ("celstack", "torch", "torchvision", "numpy", "scipy", "numba")
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's mallopt(3)
TRIM_BYTES = 2**31 - 1
MMAP_BYTES = 2**25
TOP_PAD_BYTES = 2**29
"""How much the heap grows at a time: enough for the largest tensors, which would otherwise be
returned to the system one by one. Unused pages cost nothing."""


def find_device(name: str) -> torch.device:
    """Return the device of this name; 'auto' is CUDA, else MPS, else the CPU."""
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    # Missing backends raise various errors, ImportError among them.
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CelstackError(f"--device {name}: cannot be used here: {reason}") from error
    if device.type == "meta":
        raise CelstackError(f"--device {name}: cannot be used here: it holds no data")
    return device


def tune_allocator() -> None:
    """Make glibc keep freed memory instead of returning it to the system at once.

    Every training step frees and allocates hundreds of megabytes. If they went back to the
    system in between, page faults would take 10 to 20 percent of the step's time. Does
    nothing where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, MMAP_BYTES)
        mallopt(TOP_PAD, TOP_PAD_BYTES)
        mallopt(TRIM_THRESHOLD, TRIM_BYTES)


def environment(plugins: Mapping[str, tuple[str, str]] | None = None) -> dict[str, Any]:
    """Return the machine, the versions of packages and the command, for run folders.

    Args:
        plugins: Package and version of every plugin in use, by the name of its entry point.
    """
    packages = {name: version(name) for name in REPORTED_PACKAGES}
    for package, installed in (plugins or {}).values():
        packages.setdefault(package, installed)
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": packages,
        "plugins": {name: package for name, (package, _) in sorted((plugins or {}).items())},
        "command": sys.argv,
    }

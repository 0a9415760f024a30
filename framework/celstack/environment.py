"""The environment of a run: the machine, and the versions that matter."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from typing import Any

PACKAGES = ("celstack", "torch", "torchvision", "numpy", "scipy", "numba")


def environment() -> dict[str, Any]:
    """Describe the machine and the versions that matter."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
        "command": sys.argv,
    }

"""Keep the memory of one training step for the next."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # glibc's mallopt(3)
LARGEST = 2**31 - 1


def keep_memory() -> None:
    """Ask the C library not to give freed memory back to the system at once.

    Every step frees and takes hundreds of megabytes. Where they went back to the system in
    between, as the largest always would by themselves, each of their pages would have to be
    found again: 10 to 20 percent of the step's time. Does nothing where the C library is not
    glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, LARGEST)

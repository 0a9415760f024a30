"""Keep the memory of one training step for the next."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's mallopt(3)
LARGEST = 2**31 - 1
LARGEST_MMAP = 2**25
ROOM = 2**29
"""How much is asked for at a time, so that there is room for the largest pieces, too: these
would go back to the system by themselves. What is not used costs nothing."""


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
        mallopt(MMAP_THRESHOLD, LARGEST_MMAP)
        mallopt(TOP_PAD, ROOM)
        mallopt(TRIM_THRESHOLD, LARGEST)

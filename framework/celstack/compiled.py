"""Loops over pixels, compiled for the processor by numba.

Operations of torch's go over the pixels of all images again and again, and spend most of their
time on carrying them. A loop that finishes an image before the next, row by row, has what it
needs in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch
from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays and numbers when it is first called, and keep the result.

    Sums may be taken in any order, several pixels at a time. What is not a number stays so.
    """
    loops: Any = njit(nogil=True, fastmath={"reassoc", "contract"})(function)
    with suppress(RuntimeError):  # nowhere to keep it: it is compiled again next time
        loops.enable_caching()
    return loops


def share(work: Callable[[slice], None], count: int) -> None:
    """Let each of torch's threads work on its part of so many images."""
    threads = torch.get_num_threads()
    size = -(-count // threads)
    parts = [slice(first, first + size) for first in range(0, count, size)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


def array(values: torch.Tensor) -> Any:
    """Return the values of a tensor in a plain order, if possible where they are."""
    return values.detach().contiguous().numpy()

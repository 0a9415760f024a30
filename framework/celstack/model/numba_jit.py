"""Loops over pixels, compiled for the processor by numba.

Operations of torch's go over the pixels of all images again and again, and spend most of their
time on carrying them. A loop that finishes an image before the next, row by row, has what it
needs in the cache. But loops check no index: whoever calls them checks shapes before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from celstack.geometry.windows import Windows


def supports(values: Tensor) -> bool:
    """Tell whether loops can work on a tensor."""
    return values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays and numbers when it is first called, and keep the result.

    Sums may be taken in any order, several pixels at a time. What is not a number stays so.
    A change of these options is noticed only where nothing has been kept.
    """
    import numba
    from numba.core.caching import FunctionCache

    class Kept(FunctionCache):
        """Results of earlier processes; what is damaged, or cannot be kept, is made again."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with suppress(Exception):
                found = super().load_overload(sig, target_context)
                if found is not None and tuple(found.signature.args) == tuple(sig):
                    return found
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(Exception):
                super().save_overload(sig, data)

    config: Any = numba.config
    loops: Any = numba.njit(nogil=True, fastmath={"reassoc", "contract"})(function)
    if not config.DISABLE_JIT:
        # Results are executed: where they are kept must not be said by a file of numba's in
        # whatever folder this is.
        config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")
        config.CACHE_LOCATOR_CLASSES = os.environ.get("NUMBA_CACHE_LOCATOR_CLASSES", "")
        with suppress(RuntimeError):  # nowhere to keep it: it is compiled again next time
            loops._cache = Kept(loops.py_func)
    return loops


def parallel_for(work: Callable[[slice], None], count: int) -> None:
    """Let each of torch's threads work on its part of so many images."""
    threads = torch.get_num_threads()
    size = max(1, -(-count // threads))
    parts = [slice(first, first + size) for first in range(0, count, size)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


def array(values: Tensor) -> Any:
    """Return the values of a tensor in a plain order, if possible where they are."""
    return values.detach().contiguous().numpy()


def check_shape(what: str, values: Tensor, *shape: int) -> None:
    """Refuse a tensor of another shape."""
    if values.shape != shape:
        raise ValueError(f"{what} of shape {tuple(values.shape)}, not {shape}")


def window_corners(
    windows: Sequence[Windows], count: int, canvas: tuple[int, int], *sizes: tuple[int, int]
) -> Tensor:
    """Return top and left of all layers' windows, (count, L, 2); refuse any that is outside."""
    result = torch.empty(count, len(windows), 2, dtype=torch.int64)
    for layer, (mine, (tall, wide)) in enumerate(zip(windows, sizes, strict=True)):
        result[:, layer] = torch.tensor([mine.tops, mine.lefts], dtype=torch.int64).T
        most = torch.tensor([canvas[0] - tall, canvas[1] - wide])
        if not ((result[:, layer] >= 0) & (result[:, layer] <= most)).all():
            raise ValueError(f"windows of {tall} x {wide} are not all on a canvas of {canvas}")
    return result

"""Loops over pixels, compiled for the CPU by numba.

Public. Each torch operation reads and writes the pixels of all images, so that a sequence of
them is bound by memory bandwidth. A compiled loop that finishes one image before the next,
row by row, finds its data in the cache. Compiled loops do not check indices: check shapes
with ``check_shape`` and ``window_corners`` before calling them::

    @compiled
    def brighten(images, amount):
        for n in range(len(images)):
            images[n] += amount

    if supports(images):
        values = array(images)
        parallel_for(lambda some: brighten(values[some], 0.1), len(values))
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

__all__ = ["array", "check_shape", "compiled", "parallel_for", "supports", "window_corners"]


def supports(values: Tensor) -> bool:
    """Return whether compiled loops can work on a tensor: float32 or float64 on the CPU."""
    return values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays and numbers on its first call, and cache the result.

    A decorator. Sums may be reordered, so that they can be vectorized; NaN is preserved.
    A change of these compiler options takes effect only where nothing has been cached.
    """
    import numba
    from numba.core.caching import FunctionCache

    class TolerantCache(FunctionCache):
        """A cache on disk; entries that are damaged or cannot be saved are compiled again."""

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
        # Cached code is executed, so its folder must not be set by a numba configuration
        # file that happens to be in the current folder.
        config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")
        config.CACHE_LOCATOR_CLASSES = os.environ.get("NUMBA_CACHE_LOCATOR_CLASSES", "")
        with suppress(RuntimeError):  # no writable folder: it is compiled again next time
            loops._cache = TolerantCache(loops.py_func)
    return loops


def parallel_for(work: Callable[[slice], None], count: int) -> None:
    """Run work on slices of range(count), in as many threads as torch uses.

    Args:
        work: Called with a slice of the images; it should release the GIL, as functions
            made by ``compiled`` do.
        count: The number of images.
    """
    threads = torch.get_num_threads()
    size = max(1, -(-count // threads))
    parts = [slice(first, first + size) for first in range(0, count, size)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


def array(values: Tensor) -> Any:
    """Return a tensor as a C-contiguous numpy array, without a copy if possible."""
    return values.detach().contiguous().numpy()


def check_shape(what: str, values: Tensor, *shape: int) -> None:
    """Raise ValueError if a tensor does not have this shape."""
    if values.shape != shape:
        raise ValueError(f"{what} of shape {tuple(values.shape)}, not {shape}")


def window_corners(
    windows: Sequence[Windows], count: int, canvas: tuple[int, int], *sizes: tuple[int, int]
) -> Tensor:
    """Return the top left corners of all layers' windows, and check that they are inside.

    Args:
        windows: The windows of each of L layers, one for each image.
        count: The number of images.
        canvas: Height and width of the images.
        sizes: Height and width of each layer's windows.

    Returns:
        (top, left) for each image and layer, of shape (count, L, 2).

    Raises:
        ValueError: A window is not inside the canvas.
    """
    result = torch.empty(count, len(windows), 2, dtype=torch.int64)
    for layer, (mine, (tall, wide)) in enumerate(zip(windows, sizes, strict=True)):
        result[:, layer] = torch.tensor([mine.tops, mine.lefts], dtype=torch.int64).T
        limit = torch.tensor([canvas[0] - tall, canvas[1] - wide])
        if not ((result[:, layer] >= 0) & (result[:, layer] <= limit)).all():
            raise ValueError(f"windows of {tall} x {wide} are not all on a canvas of {canvas}")
    return result

"""Append images and label maps to .npy files, without knowing their number beforehand."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from celstack.progress import WorkProgress
from celstack.text import describe_error
from celstack_kit.dataset_support.labeled_image import LabeledImage

ARRAYS = ("images", "instances", "classes")
CHUNK_IMAGES = 256
"""Number of single images that are stacked and written at a time."""
UInt8Array = NDArray[np.uint8]


class CacheWriter:
    """Collects images and label maps, in the files of a folder or, without one, in memory."""

    def __init__(self, folder: Path | None, progress: WorkProgress) -> None:
        self.folder, self.progress, self.count = folder, progress, 0
        self.chunks: dict[str, list[UInt8Array]] = {name: [] for name in ARRAYS}
        self.files: dict[str, BinaryIO] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, images: UInt8Array, instances: UInt8Array, classes: UInt8Array) -> None:
        """Append images (n, H, W, 3) and their instance and class maps (n, H, W)."""
        assert images.shape[:3] == instances.shape == classes.shape, "one label per pixel"
        for name, array in zip(ARRAYS, (images, instances, classes), strict=True):
            assert array.dtype == np.uint8, "pixels and ids are uint8"
            if self.folder is None:
                self.chunks[name].append(array)
            else:
                self._append(self.folder / f"{name}.npy", name, array)
        self.count += len(images)
        self.progress.advance(len(images))

    def add_all(self, images: Iterable[LabeledImage]) -> None:
        """Append single images, chunk by chunk."""
        remaining = iter(images)
        while chunk := list(islice(remaining, CHUNK_IMAGES)):
            pixels, instances, classes = map(np.stack, zip(*chunk, strict=True))
            self.add(pixels, instances, classes)

    def finish(self) -> None:
        """Write the number of images into the headers, and close the files."""
        assert self.count, "at least one image was added"
        with cache_errors():
            for name, file in self.files.items():
                file.seek(0)
                _write_header(file, (self.count, *self.shapes[name]))
                file.close()

    def close(self) -> None:
        """Close the files without updating their headers."""
        for file in self.files.values():
            with suppress(OSError):
                file.close()

    def _append(self, path: Path, name: str, array: UInt8Array) -> None:
        with cache_errors():
            if name not in self.files:
                self.shapes[name] = array.shape[1:]
                self.files[name] = path.open("wb")
                _write_header(self.files[name], (0, *self.shapes[name]))
            assert self.shapes[name] == array.shape[1:], "all images have the same size"
            self.files[name].write(np.ascontiguousarray(array).data)


class UnwritableError(Exception):
    """The cache folder cannot be written."""


@contextmanager
def cache_errors() -> Iterator[None]:
    """Re-raise an OSError of this block as UnwritableError."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(describe_error(error)) from error


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    # NumPy pads the header, so it keeps its size when the first dimension grows.
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)

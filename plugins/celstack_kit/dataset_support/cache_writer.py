"""Write images and labels as they are made, however many they will be."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from celstack.progress import WorkProgress
from celstack.text import describe_error

ARRAYS = ("images", "instances", "classes")
Pixels = NDArray[np.uint8]


class Writer:
    """Takes images as they are made, into a folder or, without one, into memory."""

    def __init__(self, folder: Path | None, waiting: WorkProgress) -> None:
        self.folder, self.waiting, self.count = folder, waiting, 0
        self.chunks: dict[str, list[Pixels]] = {name: [] for name in ARRAYS}
        self.files: dict[str, BinaryIO] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, images: Pixels, instances: Pixels, classes: Pixels) -> None:
        """Append images (n, H, W, 3) and their labels (n, H, W)."""
        assert images.shape[:3] == instances.shape == classes.shape, "labels are of pixels"
        for name, array in zip(ARRAYS, (images, instances, classes), strict=True):
            assert array.dtype == np.uint8, "whole levels and ids"
            if self.folder is None:
                self.chunks[name].append(array)
            else:
                self._append(self.folder / f"{name}.npy", name, array)
        self.count += len(images)
        self.waiting.advance(len(images))

    def finish(self) -> None:
        """Write the number of images into the files' headers."""
        assert self.count, "there are images"
        with writing():
            for name, file in self.files.items():
                file.seek(0)
                _write_header(file, (self.count, *self.shapes[name]))
                file.close()

    def abandon(self) -> None:
        """Close the files as they are."""
        for file in self.files.values():
            with suppress(OSError):
                file.close()

    def _append(self, path: Path, name: str, array: Pixels) -> None:
        with writing():
            if name not in self.files:
                self.shapes[name] = array.shape[1:]
                self.files[name] = path.open("wb")
                _write_header(self.files[name], (0, *self.shapes[name]))
            assert self.shapes[name] == array.shape[1:], "all images are of one size"
            self.files[name].write(np.ascontiguousarray(array).data)


class UnwritableError(Exception):
    """The cache does not take what is written."""


@contextmanager
def writing() -> Iterator[None]:
    """Tell what goes wrong with a file inside as the fault of the cache."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(describe_error(error)) from error


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    # Numpy leaves room for the first number to grow, so that this can be written again.
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)

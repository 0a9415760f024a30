"""Disk cache of labeled images: made once per cache key, then memory-mapped."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from celstack import Batch, CelstackError
from celstack.data import cache_dir
from celstack.progress import QUIET_SECONDS, WorkProgress
from celstack.text import describe_error
from celstack_kit.dataset_support.cache_writer import (
    ARRAYS,
    CacheWriter,
    UInt8Array,
    UnwritableError,
    cache_errors,
)
from celstack_kit.formats.read_errors import LOG

FORMAT_VERSION = 1
"""Incremented when the file layout changes, so that older files are not read."""


class CachedImages:
    """Images (N, H, W, 3) and the instance and class ids of their pixels (N, H, W), all uint8.

    Arrays from disk are memory-mapped; a pickle holds the path of the folder, not the pixels.
    """

    def __init__(self, images: UInt8Array, instances: UInt8Array, classes: UInt8Array) -> None:
        self.images, self.instances, self.classes = images, instances, classes
        self.folder: Path | None = None
        self.bounds = slice(None)

    @classmethod
    def open(cls, folder: Path) -> "CachedImages":
        """Memory-map the arrays of a folder, or raise CelstackError if they are damaged."""
        try:
            images, instances, classes = (
                _open_array(folder / f"{name}.npy") for name in ARRAYS
            )
        # NumPy evaluates the header as Python, so a damaged one raises almost anything.
        except Exception as error:
            text = "damaged; delete this folder, and it is generated again"
            raise CelstackError(f"{folder}: {text} ({describe_error(error)})") from error
        opened = cls(images, instances, classes)
        if {len(labels) for labels in (instances, classes)} != {len(images)} or not len(images):
            raise CelstackError(f"{folder}: damaged; its arrays differ in length or are empty")
        opened.folder = folder
        return opened

    def subset(self, start: int, stop: int) -> "CachedImages":
        """Return the images from ``start`` up to ``stop``, without copying them."""
        assert self.bounds == slice(None), "subsets of subsets are not supported"
        bounds = slice(start, stop)
        chosen = CachedImages(self.images[bounds], self.instances[bounds], self.classes[bounds])
        chosen.folder, chosen.bounds = self.folder, bounds
        return chosen

    def __len__(self) -> int:
        return len(self.images)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is None:
            return CachedImages, (self.images, self.instances, self.classes)
        return _reopen, (self.folder, self.bounds)

    def read(self, indices: Sequence[int]) -> Batch:
        """Return the images at these indices as a batch."""
        chosen = np.asarray(indices, np.int64)
        pixels = torch.from_numpy(self.images[chosen]).permute(0, 3, 1, 2)
        return Batch(
            pixels.contiguous().float() / 255,
            instances=torch.from_numpy(self.instances[chosen]).long(),
            classes=torch.from_numpy(self.classes[chosen]).long(),
        )


def cached_images(
    name: str, key: Mapping[str, Any], make: Callable[[CacheWriter], None], total: int
) -> CachedImages:
    """Open the cached images of a key, or make and cache them.

    If another process is making the same images, wait for it. If the cache folder cannot be
    written, keep the images in memory.

    Args:
        name: Name of the dataset, which the cache folder's name begins with.
        key: All that the images depend on, as JSON values; each key has a folder of its own.
        make: Adds the images to the writer.
        total: About how many images are made, for the progress display.
    """
    key_json = json.dumps({**key, "format": FORMAT_VERSION}, sort_keys=True)
    digest = hashlib.sha256(key_json.encode()).hexdigest()[:16]
    folder = cache_dir() / "generated" / f"{name}-{digest}"
    if (found := _open_if_valid(folder)) is not None:
        return found
    try:
        return _make_and_store(name, folder, key_json, make, total)
    except UnwritableError as error:
        text = "%s: %s cannot be written (%s); images are kept in memory"
        LOG.warning(text, name, folder.parent, error)
    with WorkProgress(f"{name}: making images", total) as progress:
        writer = CacheWriter(None, progress)
        make(writer)
        writer.finish()
    return CachedImages(*(np.concatenate(writer.chunks[array]) for array in ARRAYS))


def _make_and_store(
    name: str, folder: Path, key_json: str, make: Callable[[CacheWriter], None], total: int
) -> CachedImages:
    """Make the images in a staging folder, under a file lock, and rename it when complete."""
    staging = folder.with_name(f"{folder.name}.part")
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    with cache_errors():
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=QUIET_SECONDS)
        except Timeout:
            LOG.warning("%s: another process is making these images; waiting for it", name)
            lock.acquire()
    try:
        if (found := _open_if_valid(folder)) is not None:
            return found
        if folder.exists():
            LOG.warning("%s: damaged, so it is made again", folder)
        with cache_errors():
            # Damaged, or left by a process that was killed: this process holds the lock.
            for old in (folder, staging):
                shutil.rmtree(old, ignore_errors=True)
            staging.mkdir()
            (staging / "facts.json").write_text(key_json, encoding="utf-8")
        with WorkProgress(f"{name}: making images", total) as progress:
            writer = CacheWriter(staging, progress)
            try:
                make(writer)
                writer.finish()
            finally:
                writer.close()
        with cache_errors():
            staging.rename(folder)
        return CachedImages.open(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        lock.release()


def _open_if_valid(folder: Path) -> CachedImages | None:
    """Open a cache folder; return None if it is missing or damaged."""
    if not folder.is_dir():
        return None
    try:
        return CachedImages.open(folder)
    except CelstackError:
        return None


def _open_array(path: Path) -> UInt8Array:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim < 3:
        raise ValueError(f"{path.name} is {array.dtype} {array.shape}")
    return array


def _reopen(folder: Path, bounds: slice) -> CachedImages:
    whole = CachedImages.open(folder)
    return whole if bounds == slice(None) else whole.subset(bounds.start, bounds.stop)

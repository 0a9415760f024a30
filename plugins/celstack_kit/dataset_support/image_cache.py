"""Images and their labels, made once and kept in the user's cache."""

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
    Pixels,
    UnwritableError,
    Writer,
    writing,
)
from celstack_kit.formats.read_errors import LOG

FORMAT = 1
"""Counts up when the files change, so that those of before are not read."""


class Stored:
    """Images (N, H, W, 3) and the instance and class of each pixel (N, H, W), all uint8.

    They lie on disk, where only what is read takes memory; a pickled copy opens them again.
    """

    def __init__(self, images: Pixels, instances: Pixels, classes: Pixels) -> None:
        self.images, self.instances, self.classes = images, instances, classes
        self.folder: Path | None = None
        self.stretch = slice(None)

    @classmethod
    def open(cls, folder: Path) -> "Stored":
        """Open what is kept in a folder, or say that it is damaged."""
        try:
            images, instances, classes = (_load(folder / f"{name}.npy") for name in ARRAYS)
        # A damaged header fails in as many ways as Python has of not being Python.
        except Exception as error:
            text = "damaged; delete this folder, and it is made again"
            raise CelstackError(f"{folder}: {text} ({describe_error(error)})") from error
        opened = cls(images, instances, classes)
        if {len(labels) for labels in (instances, classes)} != {len(images)} or not len(images):
            raise CelstackError(f"{folder}: damaged; its files do not fit each other")
        opened.folder = folder
        return opened

    def part(self, start: int, stop: int) -> "Stored":
        """Return the images from one index up to another, without a copy."""
        assert self.stretch == slice(None), "a part of a part is not needed"
        stretch = slice(start, stop)
        chosen = Stored(self.images[stretch], self.instances[stretch], self.classes[stretch])
        chosen.folder, chosen.stretch = self.folder, stretch
        return chosen

    def __len__(self) -> int:
        return len(self.images)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is None:
            return Stored, (self.images, self.instances, self.classes)
        return _reopen, (self.folder, self.stretch)

    def read(self, indices: Sequence[int]) -> Batch:
        """Return these images as a batch."""
        chosen = np.asarray(indices, np.int64)
        pixels = torch.from_numpy(self.images[chosen]).permute(0, 3, 1, 2)
        return Batch(
            pixels.contiguous().float() / 255,
            instances=torch.from_numpy(self.instances[chosen]).long(),
            classes=torch.from_numpy(self.classes[chosen]).long(),
        )


def stored(
    name: str, facts: Mapping[str, Any], make: Callable[[Writer], None], total: int
) -> Stored:
    """Open what was made of these facts, or make it and keep it.

    ``make`` adds about ``total`` images to the writer. ``facts`` are what the images depend
    on, as JSON has it: other facts have another folder. Of two processes, the second waits
    for what the first makes. Where the cache cannot be written, images stay in memory.
    """
    written = json.dumps({**facts, "format": FORMAT}, sort_keys=True)
    digest = hashlib.sha256(written.encode()).hexdigest()[:16]
    folder = cache_dir() / "generated" / f"{name}-{digest}"
    if (found := _look(folder)) is not None:
        return found
    try:
        return _keep(name, folder, written, make, total)
    except UnwritableError as error:
        text = "%s: %s cannot be written (%s); images stay in memory"
        LOG.warning(text, name, folder.parent, error)
    with WorkProgress(f"{name}: making images", total) as waiting:
        writer = Writer(None, waiting)
        make(writer)
        writer.finish()
    return Stored(*(np.concatenate(writer.chunks[array]) for array in ARRAYS))


def _keep(
    name: str, folder: Path, written: str, make: Callable[[Writer], None], total: int
) -> Stored:
    beside = folder.with_name(f"{folder.name}.part")
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    with writing():
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=QUIET_SECONDS)
        except Timeout:
            LOG.warning("%s: another process is making these images; waiting for it", name)
            lock.acquire()
    try:
        if (found := _look(folder)) is not None:
            return found
        if folder.exists():
            LOG.warning("%s: damaged, so it is made again", folder)
        with writing():
            # Damaged, or left by a process that was killed: the lock says that it is ours.
            for old in (folder, beside):
                shutil.rmtree(old, ignore_errors=True)
            beside.mkdir()
            (beside / "facts.json").write_text(written, encoding="utf-8")
        with WorkProgress(f"{name}: making images", total) as waiting:
            writer = Writer(beside, waiting)
            try:
                make(writer)
                writer.finish()
            finally:
                writer.abandon()
        with writing():
            beside.rename(folder)
        return Stored.open(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        lock.release()


def _look(folder: Path) -> Stored | None:
    """Open a folder if it is there and sound."""
    if not folder.is_dir():
        return None
    try:
        return Stored.open(folder)
    except CelstackError:
        return None


def _load(path: Path) -> Pixels:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim < 3:
        raise ValueError(f"{path.name} is {array.dtype} {array.shape}")
    return array


def _reopen(folder: Path, stretch: slice) -> Stored:
    whole = Stored.open(folder)
    return whole if stretch == slice(None) else whole.part(stretch.start, stretch.stop)

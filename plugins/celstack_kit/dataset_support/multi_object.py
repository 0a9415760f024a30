"""Scenes: datasets that are generated or read from published files, once, and kept."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from celstack import CelstackError
from celstack.data.paths import find, places
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.generated import Generated
from celstack_kit.dataset_support.image_cache import Stored, stored
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.dataset_support.mask_folders import FOLDERS, folder_scenes
from celstack_kit.dataset_support.object_records import Record, record_scenes
from celstack_kit.formats.read_errors import LOG, naming

Origin = Literal["generated", "records", "folder"]
BUCKET = "https://storage.googleapis.com/multi-object-datasets"
HOMEPAGE = "https://github.com/google-deepmind/multi_object_datasets"
"""Where records of such images are published, and by whom."""
CHUNK = 256
"""Converted images are written so many at a time."""


class Scenes(Generated):
    """Images with the instance and the class of every pixel, in the splits train and test.

    A dataset says how it generates a split (``facts``, ``generate``) and what becomes of a
    published image (``from_record``, ``from_folder``). Whichever it is, that is done once
    and kept in the user's cache.

    Of published files, ``train`` are the first ``count`` images in their order, and ``test``
    the ``test_count`` ones after them. Where there are fewer than both together, ``test``
    are the last ones and ``train`` all before.
    """

    files: tuple[str, str]
    """The published file of records, and the folder that holds ``images`` and the others."""
    record_size: tuple[int, int]
    """Height and width of the images in the records."""

    def __init__(
        self, source: Origin, root: Path | None, count: int, test_count: int, skip_broken: bool
    ) -> None:
        super().__init__(count, test_count)
        if root is not None and source == "generated":
            raise CelstackError('root: only for source = "records" or "folder"')
        self.source, self.root, self.skip_broken = source, root, skip_broken

    def only_generated(self, **changed: bool) -> None:
        """Refuse options that say how to generate images, where none are generated."""
        said = [name for name, is_changed in changed.items() if is_changed]
        if said and self.source != "generated":
            raise CelstackError(f'{" and ".join(said)}: only for source = "generated"')

    @abstractmethod
    def from_record(self, record: Record) -> Labeled | None:
        """Make an image of ours of a record, or return None if it is none."""

    def from_folder(self, published: Labeled) -> Labeled | None:
        """Do the same with an image of a folder; most can be used as they are."""
        height, width = published.image.shape[:2]
        if (height, width) != self.image_shape[1:]:
            raise CelstackError(f"it is {height} x {width}, not {self.image_shape[1:]}")
        return published

    def _stored(self, split: str) -> Stored:
        return super()._stored(split) if self.source == "generated" else self._published[split]

    @cached_property
    def _published(self) -> dict[str, Stored]:
        path = self._find()
        judged, wanted = self.counts["test"], sum(self.counts.values())
        files = [path] if self.source == "records" else [path / name for name in FOLDERS]
        facts = {
            **self.facts(),
            "source": self.source,
            "files": [[str(file.resolve()), *_stamp(file)] for file in files],
            "wanted": wanted,
            "skip_broken": self.skip_broken,
            "shape": list(self.image_shape),
            "version": self.version,
        }
        whole = stored(self.name, facts, lambda writer: self._convert(path, writer), wanted)
        learned = min(self.counts["train"], len(whole) - judged)
        if learned < 1:
            text = f"{len(whole)} images, of which test_count = {judged} leaves none to learn"
            raise CelstackError(f"{path}: {text}")
        if learned < self.counts["train"]:
            text = "%s: %d images in %s, so %d to learn from and the last %d to judge on"
            LOG.warning(text, self.name, len(whole), path, learned, judged)
        ends = learned + judged
        return {"train": whole.part(0, learned), "test": whole.part(learned, ends)}

    def _find(self) -> Path:
        """Look for the published file or folder, which ``root`` may also name directly."""
        file, folder = self.files
        remedy = 'source = "generated" makes such images instead'
        if self.source == "records":
            if self.root is not None and (named := places(self.root)[0]).is_file():
                return named
            remedy = f"'celstack data get {self.name}' fetches it; {remedy}"
            return find(self.name, self.root, [file, f"{folder}/{file}"], remedy)
        names = [f"{folder}/{FOLDERS[0]}"]
        if self.root is not None:
            names.insert(0, FOLDERS[0])
        return find(self.name, self.root, names, remedy).parent

    def _convert(self, path: Path, writer: Writer) -> None:
        broken: list[str] = []
        sound = islice(self._sound(path, broken), sum(self.counts.values()))
        while chunk := list(islice(sound, CHUNK)):
            images, instances, classes = map(np.stack, zip(*chunk, strict=True))
            writer.add(images, instances, classes)
        if not writer.count:
            raise CelstackError(broken[0] if broken else f"{path}: no images of ours in it")
        if broken:
            text, total = "%s: skipped %d of %d; first %s", len(broken) + writer.count
            LOG.warning(text, self.name, len(broken), total, broken[0])

    def _sound(self, path: Path, broken: list[str]) -> Iterator[Labeled]:
        """Read the images one by one; damage is an error or, if so wished, listed."""
        images: Iterator[Labeled | CelstackError]
        if self.source == "records":
            images = record_scenes(path, self.record_size, self.from_record)
        else:
            images = folder_scenes(path, self.from_folder)
        for image in images:
            if not isinstance(image, CelstackError):
                yield image
            elif self.skip_broken:
                broken.append(str(image))
            else:
                raise image


def _stamp(path: Path) -> list[int]:
    """Return what changes when a file does, or any file in a folder."""
    if not path.exists():
        return []
    with naming(path):
        found = [path.stat()]
        if path.is_dir():
            with os.scandir(path) as inside:
                found += [entry.stat(follow_symlinks=False) for entry in inside]
    return [len(found), sum(f.st_size for f in found), sum(f.st_mtime_ns for f in found)]

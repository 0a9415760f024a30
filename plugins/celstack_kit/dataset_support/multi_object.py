"""Base class of multi-object datasets: generated, or converted from published files."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from celstack import CelstackError
from celstack.data import data_dirs, require_file
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.generated import GeneratedDataset
from celstack_kit.dataset_support.image_cache import CachedImages, cached_images
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.dataset_support.mask_folders import FOLDERS, read_mask_folders
from celstack_kit.dataset_support.object_records import ObjectRecord, read_object_records
from celstack_kit.formats.read_errors import LOG, blame_file

SourceKind = Literal["generated", "records", "folder"]
BUCKET = "https://storage.googleapis.com/multi-object-datasets"
HOMEPAGE = "https://github.com/google-deepmind/multi_object_datasets"
"""Where the TFRecord files are published, and by whom."""


class MultiObjectDataset(GeneratedDataset):
    """Images with instance and class maps, in the splits train and test.

    Subclasses say how a split is generated (``cache_key``, ``generate``) and how a published
    image is converted (``from_record``, ``from_folder``). Either is done once and kept in the
    user's cache folder.

    Of published files, ``train`` has the first ``count`` images and ``test`` the next
    ``test_count``. If there are fewer images than both together, ``test`` has the last
    ``test_count`` and ``train`` all before them.
    """

    files: tuple[str, str]
    """The published TFRecord file, and the folder that holds ``images`` and the masks."""
    record_size: tuple[int, int]
    """Height and width of the images in the records."""

    def __init__(
        self,
        source: SourceKind,
        root: Path | None,
        count: int,
        test_count: int,
        skip_broken: bool,
    ) -> None:
        super().__init__(count, test_count)
        if root is not None and source == "generated":
            raise CelstackError('root: only for source = "records" or "folder"')
        self.source, self.root, self.skip_broken = source, root, skip_broken

    def require_generated(self, **changed: bool) -> None:
        """Raise CelstackError if an option of the generator is set for another source."""
        options = [name for name, is_changed in changed.items() if is_changed]
        if options and self.source != "generated":
            raise CelstackError(f'{" and ".join(options)}: only for source = "generated"')

    @abstractmethod
    def from_record(self, record: ObjectRecord) -> LabeledImage | None:
        """Convert a record, or return None if the image does not belong to this dataset."""

    def from_folder(self, published: LabeledImage) -> LabeledImage | None:
        """Convert an image of a folder; by default, only check its size."""
        height, width = published.image.shape[:2]
        if (height, width) != self.image_shape[1:]:
            raise CelstackError(f"it is {height} x {width}, not {self.image_shape[1:]}")
        return published

    def _load(self, split: str) -> CachedImages:
        return super()._load(split) if self.source == "generated" else self._published[split]

    @cached_property
    def _published(self) -> dict[str, CachedImages]:
        """Convert the published files, and divide the images into splits."""
        path = self._find()
        num_test, wanted = self.counts["test"], sum(self.counts.values())
        files = [path] if self.source == "records" else [path / name for name in FOLDERS]
        key = {
            **self.cache_key(),
            "source": self.source,
            "files": [[str(file.resolve()), *_fingerprint(file)] for file in files],
            "wanted": wanted,
            "skip_broken": self.skip_broken,
            "shape": list(self.image_shape),
            "version": self.version,
        }
        images = cached_images(self.name, key, lambda w: self._convert(path, w), wanted)
        num_train = min(self.counts["train"], len(images) - num_test)
        if num_train < 1:
            text = f"{len(images)} images; test_count = {num_test} leaves none for training"
            raise CelstackError(f"{path}: {text}")
        if num_train < self.counts["train"]:
            text = "%s: %d images in %s: %d for training, the last %d for testing"
            LOG.warning(text, self.name, len(images), path, num_train, num_test)
        end = num_train + num_test
        return {"train": images.subset(0, num_train), "test": images.subset(num_train, end)}

    def _find(self) -> Path:
        """Find the published file or folder; ``root`` may also be its own path."""
        file, folder = self.files
        remedy = 'source = "generated" makes such images instead'
        if self.source == "records":
            if self.root is not None and (named := data_dirs(self.root)[0]).is_file():
                return named
            remedy = f"'celstack data get {self.name}' fetches it; {remedy}"
            return require_file(self.name, self.root, [file, f"{folder}/{file}"], remedy)
        names = [f"{folder}/{FOLDERS[0]}"]
        if self.root is not None:
            names.insert(0, FOLDERS[0])
        return require_file(self.name, self.root, names, remedy).parent

    def _convert(self, path: Path, writer: CacheWriter) -> None:
        """Write the first images that can be read and belong to this dataset."""
        broken: list[str] = []
        writer.add_all(islice(self._valid_images(path, broken), sum(self.counts.values())))
        if not writer.count:
            raise CelstackError(broken[0] if broken else f"{path}: no usable images in it")
        if broken:
            text, total = "%s: skipped %d of %d; first %s", len(broken) + writer.count
            LOG.warning(text, self.name, len(broken), total, broken[0])

    def _valid_images(self, path: Path, broken: list[str]) -> Iterator[LabeledImage]:
        """Yield the readable images; raise or, with ``skip_broken``, list the other errors."""
        images: Iterator[LabeledImage | CelstackError]
        if self.source == "records":
            images = read_object_records(path, self.record_size, self.from_record)
        else:
            images = read_mask_folders(path, self.from_folder)
        for image in images:
            if not isinstance(image, CelstackError):
                yield image
            elif self.skip_broken:
                broken.append(str(image))
            else:
                raise image


def _fingerprint(path: Path) -> list[int]:
    """Return file count, total size and modification times of a file or folder."""
    if not path.exists():
        return []
    with blame_file(path):
        found = [path.stat()]
        if path.is_dir():
            with os.scandir(path) as inside:
                found += [entry.stat(follow_symlinks=False) for entry in inside]
    return [len(found), sum(f.st_size for f in found), sum(f.st_mtime_ns for f in found)]

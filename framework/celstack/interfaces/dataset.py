"""Dataset: images and their ground truth."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import attrs
from jaxtyping import Float, Int
from torch import Tensor

from celstack.interfaces.part import Part


@attrs.frozen(eq=False)
class Batch:
    """Images in [0, 1] and their ground truth, as far as the dataset has any.

    ``instances`` and ``classes`` label pixels, 0 for background; ``label`` is the class of
    a whole image. Each is None where it is unknown.
    """

    images: Float[Tensor, "B C H W"]
    instances: Int[Tensor, "B H W"] | None = None
    classes: Int[Tensor, "B H W"] | None = None
    label: Int[Tensor, " B"] | None = None

    def __len__(self) -> int:
        return len(self.images)


def _check_url(_: Any, __: Any, url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ValueError(f"{url!r} is not an http:// or https:// address")


def _check_file(_: Any, __: Any, file: str) -> None:
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or re.search(r"[\\:\0]", file):
        raise ValueError(f"{file!r} is not a relative file path without '..'")


def _check_size(_: Any, __: Any, size: int | None) -> None:
    if size is not None and size < 1:
        raise ValueError(f"size: {size} bytes; must be at least 1")


def _check_checksum(_: Any, __: Any, checksum: str) -> None:
    if checksum and not re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum):
        raise ValueError(f"{checksum!r} is not md5: or sha256: with lowercase hex digits")


@attrs.frozen
class Source:
    """A published file that ``celstack data get`` can download.

    ``file`` is the name under which it is stored, by default the last part of the address.
    ``size`` is in bytes; ``checksum`` begins with ``md5:`` or ``sha256:``::

        Source(
            url="https://example.org/stars.npz",
            licence="CC BY 4.0",
            homepage="https://example.org/stars",
            checksum="md5:0cc175b9c0f1b6a831c399e269772661",
        )
    """

    url: str = attrs.field(validator=_check_url)
    licence: str
    homepage: str
    size: int | None = attrs.field(default=None, validator=_check_size)
    checksum: str = attrs.field(default="", validator=_check_checksum)
    citation: str = ""
    file: str = attrs.field(validator=_check_file)

    @file.default
    def _last_part(self) -> str:
        return urlsplit(self.url).path.rpartition("/")[2]


class Dataset(Part):
    """Images in splits.

    A dataset is read by lists of indices, so that one in memory needs a single lookup::

        class Noise(Dataset):
            image_shape = (3, 16, 16)

            def count(self, split):
                return 100

            def read(self, split, indices):
                seeds = [torch.Generator().manual_seed(index) for index in indices]
                return Batch(torch.stack([torch.rand(3, 16, 16, generator=s) for s in seeds]))

    Laws:
        ``read`` is a pure function: the same split and indices give the same batch, in any
        order and in any process, however indices are grouped. It does not use or change the
        global random state.
        Images are float32 in [0, 1] and have the shape ``image_shape``; labels are int64.
        One split is called ``train``, no split is empty, and a dataset can be pickled.
        Before its first step, a run checks the first batch of each split that it uses.
    """

    splits: tuple[str, ...] = ("train", "test")
    max_objects: int | None = None
    """The greatest number of objects in an image; None if unknown."""
    class_names: tuple[str, ...] = ()
    """The names of classes, as far as known; pixels of class 1 show the first."""
    files: tuple[str, ...] = ()
    """The files and folders that it needs in a data folder (``celstack.data``)."""
    sources: tuple[Source, ...] = ()
    """Those of its files that ``celstack data get`` can download."""
    elsewhere: str = ""
    """How to get files that cannot be downloaded: ``unpack x.tar from https://...``."""
    generated: bool = False
    """Whether it can generate its images, without any files."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "most_objects" in cls.__dict__:  # as the attribute was called in 0.1.0
            cls.max_objects = cls.__dict__["most_objects"]
            del cls.most_objects
        super().__init_subclass__(**kwargs)

    @property
    def most_objects(self) -> int | None:
        """``max_objects``, by its name in 0.1.0."""
        return self.max_objects

    @most_objects.setter
    def most_objects(self, count: int | None) -> None:
        self.max_objects = count

    @property
    def remedy(self) -> str:
        """Say how to get its files, for ``celstack.data.require_file``."""
        ways = [self.elsewhere] if self.elsewhere else []
        if self.sources:
            ways.append(f"'celstack data get {self.name}' fetches it")
        if self.generated:
            ways.append(f"'celstack show dataset {self.name}' says how to generate it instead")
        return "; ".join(ways)

    def suggest(self) -> dict[str, Any]:
        """Choose values for options that a recipe leaves ``"auto"``.

        Returns:
            Values by their path in the recipe, such as ``{"sprites.count": 12}``;
            ``"stages[].epochs"`` stands for all stages. Empty by default.
        """
        return {}

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]:
        """The shape (C, H, W) of every image."""

    @abstractmethod
    def count(self, split: str) -> int:
        """Return the number of images in a split."""

    @abstractmethod
    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Return these images of a split, in this order."""

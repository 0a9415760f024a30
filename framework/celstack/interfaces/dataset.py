"""Dataset: images, and what is known about them."""

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
    """Images in [0, 1], and the ground truth that the dataset has of them.

    ``instances`` and ``classes`` label pixels, 0 for background; ``label`` is the class of
    a whole image. Each is None where it is not known.
    """

    images: Float[Tensor, "B C H W"]
    instances: Int[Tensor, "B H W"] | None = None
    classes: Int[Tensor, "B H W"] | None = None
    label: Int[Tensor, " B"] | None = None

    def __len__(self) -> int:
        return len(self.images)


def _check_url(_: Any, __: Any, url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise ValueError(f"{url!r} is no address that begins with https:// or http://")


def _check_file(_: Any, __: Any, file: str) -> None:
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or re.search(r"[\\:\0]", file):
        raise ValueError(f"{file!r} is not the name of a file in a folder")


def _check_size(_: Any, __: Any, size: int | None) -> None:
    if size is not None and size < 1:
        raise ValueError(f"no file of {size} bytes is published")


def _check_checksum(_: Any, __: Any, checksum: str) -> None:
    if checksum and not re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum):
        raise ValueError(f"{checksum!r} is neither md5: nor sha256: and its digits, in small")


@attrs.frozen
class Source:
    """One file that is published for anybody to fetch, and what its owners say of it.

    It is kept under the name ``file``, which is the address's last piece unless given.
    ``size`` is in bytes; ``checksum`` begins with ``md5:`` or ``sha256:``.
    """

    url: str = attrs.field(validator=_check_url)
    licence: str
    homepage: str
    size: int | None = attrs.field(default=None, validator=_check_size)
    checksum: str = attrs.field(default="", validator=_check_checksum)
    citation: str = ""
    file: str = attrs.field(validator=_check_file)

    @file.default
    def _last_piece(self) -> str:
        return urlsplit(self.url).path.rpartition("/")[2]


class Dataset(Part):
    """Images in splits.

    A dataset is read by lists of indices, so that one in memory answers with one lookup::

        class Noise(Dataset):
            image_shape = (3, 16, 16)

            def count(self, split):
                return 100

            def read(self, split, indices):
                ...

    Laws:
        ``read`` is a function: the same split and indices give the same batch, in any order
        and in any process, however indices are grouped. It leaves the random state alone.
        Images are float32 in [0, 1] and have the shape ``image_shape``; labels are int64.
        One split is called ``train``, no split is empty, and a dataset can be pickled.
    """

    splits: tuple[str, ...] = ("train", "test")
    most_objects: int | None = None
    """The greatest number of objects in an image, where that is known."""
    class_names: tuple[str, ...] = ()
    """What classes are called, where that is known; class 1 of a pixel is the first."""
    files: tuple[str, ...] = ()
    """The files and folders that it looks for in the places of ``celstack.data.paths``."""
    sources: tuple[Source, ...] = ()
    """Those of its files that ``celstack data get`` can fetch."""
    elsewhere: str = ""
    """What to do to have files that cannot be fetched: ``unpack x.tar from https://...``."""
    generated: bool = False
    """Whether it can do without files, because it makes its images itself."""

    @property
    def remedy(self) -> str:
        """Say how to come by its files, for ``celstack.data.paths.require_file``."""
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

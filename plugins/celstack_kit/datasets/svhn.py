"""SVHN: house numbers seen from the street, one digit in the middle of each image."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from celstack import Batch, CelstackError, Dataset, Source, hookimpl
from celstack.data.paths import find, look
from celstack_kit.formats.matlab import read_arrays
from celstack_kit.formats.read_errors import LOG, naming

OFFICIAL = {"train": 73_257, "test": 26_032, "extra": 531_131}
"""The three files, and how many digits were published in each."""
HOMEPAGE = "http://ufldl.stanford.edu/housenumbers/"
PUBLISHED = {
    "train_32x32.mat": (182_040_794, "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
    "test_32x32.mat": (64_275_384, "md5:eb5a983be6a315427106f1b164d9cef3"),
    "extra_32x32.mat": (1_329_278_602, "md5:a93ce644f1a588dc4d68dda5feec44a7"),
}
SPLITS = {"train": ("train", "test", "extra"), "labeled": ("train", "test"), "test": ("test",)}


class Svhn(Dataset):
    """Cropped digits, 32 x 32, from the official ``.mat`` files that are there.

    ``train_32x32.mat``, ``test_32x32.mat`` and ``extra_32x32.mat`` are looked for in
    ``root``; else in the folder that CELSTACK_DATA names, then in the user's cache. Files
    that are not there are left out, and the log says so; none at all is an error.

    The splits are not the official ones, because the paper learns from all images and
    judges on those of the first two files:

    - ``train``: all of train, test and, unless ``extra`` is false, extra;
    - ``labeled``: train and test, which is what the paper's figures are about;
    - ``test``: test alone, which therefore *was* learned from.

    ``label`` is the digit. All that is read is held in memory: 3 kB an image, 1.9 GB with
    extra.
    """

    splits = tuple(SPLITS)
    most_objects = None  # Neighboring digits look in from the sides.
    class_names = tuple("0123456789")
    files = tuple(PUBLISHED)
    sources = tuple(
        Source(
            HOMEPAGE + file,
            licence="for non-commercial use only",
            homepage=HOMEPAGE,
            size=size,
            checksum=checksum,
            citation="Netzer et al., Reading Digits in Natural Images with Unsupervised "
            "Feature Learning, NIPS Workshop on Deep Learning, 2011",
        )
        for file, (size, checksum) in PUBLISHED.items()
    )
    image_shape = (3, 32, 32)

    def __init__(self, root: Path | None = None, extra: bool = True) -> None:
        self.root, self.extra = root, extra
        self._loaded: dict[str, tuple[Tensor, Tensor]] = {}

    def count(self, split: str) -> int:
        """Return how many digits the files of a split hold."""
        return sum(len(labels) for _, labels in self._files(split))

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Look the images up; the first time, the files are read."""
        chosen = torch.as_tensor(list(indices), dtype=torch.int64)
        images = torch.empty(len(chosen), *self.image_shape)
        label = torch.empty_like(chosen)
        start = 0
        for pixels, labels in self._files(split):
            here = (chosen >= start) & (chosen < start + len(labels))
            images[here] = pixels[chosen[here] - start].float() / 255
            label[here] = labels[chosen[here] - start]
            start += len(labels)
        assert ((chosen >= 0) & (chosen < start)).all(), "an index is one of the split's"
        return Batch(images, label=label)

    def _files(self, split: str) -> list[tuple[Tensor, Tensor]]:
        """Return images and digits of the files that make a split."""
        wanted = [name for name in SPLITS[split] if name in self._there]
        if not wanted:
            files = [_file(name) for name in SPLITS[split]]
            find(self.name, self.root, files, self.remedy)
        for name in wanted:
            if name not in self._loaded:
                self._loaded[name] = _load(self._there[name], OFFICIAL[name])
        return [self._loaded[name] for name in wanted]

    @cached_property
    def _there(self) -> dict[str, Path]:
        """Look for each file on its own; they need not be in one place."""
        names = [name for name in OFFICIAL if self.extra or name != "extra"]
        found = {name: look(self.root, [_file(name)]) for name in names}
        there = {name: path for name, path in found.items() if path is not None}
        missing = [_file(name) for name in names if name not in there]
        if there and missing:
            LOG.warning("svhn: goes without %s, not found", " and ".join(missing))
        return there


def _file(name: str) -> str:
    return f"{name}_32x32.mat"


def _load(path: Path, official: int) -> tuple[Tensor, Tensor]:
    """Return the images (N, 3, 32, 32) and digits of a file, if it is laid out as published."""
    with naming(path):
        table = read_arrays(path, ("X", "y"))
    for name in ("X", "y"):
        if name not in table:
            raise CelstackError(f"{path}: no array of numbers called {name} in it")
    pixels, digits = table["X"], table["y"].ravel()
    if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, len(digits)):
        text = f"{pixels.dtype} {pixels.shape}, not uint8 (32, 32, 3, {len(digits)}) as y says"
        raise CelstackError(f"{path}: X is {text}")
    if not len(digits) or not np.isin(digits, range(1, 11)).all():
        raise CelstackError(f"{path}: y must be 1 to 10, where 10 is the digit 0")
    if len(digits) != official:
        LOG.warning("svhn: %d images in %s, but %d were published", len(digits), path, official)
    labels = torch.from_numpy(digits.astype(np.int64) % 10)
    # As stored, one image after another: no copy is made of what may be gigabytes.
    return torch.from_numpy(pixels.transpose(3, 2, 0, 1)), labels


@hookimpl
def celstack_datasets() -> dict[str, type[Svhn]]:
    """Let recipes say ``use = "svhn"``."""
    return {"svhn": Svhn}

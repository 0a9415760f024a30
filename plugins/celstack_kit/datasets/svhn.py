"""SVHN: house numbers in street views, one digit in the center of each image."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from celstack import Batch, CelstackError, Dataset, Source, hookimpl
from celstack.data import find_file, require_file
from celstack_kit.formats.matlab import read_arrays
from celstack_kit.formats.read_errors import LOG, blame_file

OFFICIAL = {"train": 73_257, "test": 26_032, "extra": 531_131}
"""Published number of digits in each of the three files."""
HOMEPAGE = "http://ufldl.stanford.edu/housenumbers/"
PUBLISHED = {
    "train_32x32.mat": (182_040_794, "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
    "test_32x32.mat": (64_275_384, "md5:eb5a983be6a315427106f1b164d9cef3"),
    "extra_32x32.mat": (1_329_278_602, "md5:a93ce644f1a588dc4d68dda5feec44a7"),
}
SPLITS = {"train": ("train", "test", "extra"), "labeled": ("train", "test"), "test": ("test",)}


class Svhn(Dataset):
    """Cropped digits, 32 x 32, from those of the official ``.mat`` files that are found.

    ``train_32x32.mat``, ``test_32x32.mat`` and ``extra_32x32.mat`` are searched for in
    ``root``; else in the folder that CELSTACK_DATA names, then in the user's cache. Missing
    files are left out with a warning; if all are missing, that is an error.

    The splits are not the official ones, because the paper trains on all images and
    evaluates on those of the first two files:

    - ``train``: all of train, test and, unless ``extra`` is false, extra;
    - ``labeled``: train and test, on which the paper's results are reported;
    - ``test``: test alone, which is therefore part of the training data.

    ``label`` is the digit. Images are held in memory: 3 kB each, 1.9 GB with extra.
    """

    splits = tuple(SPLITS)
    max_objects = None  # Parts of neighboring digits are visible at the sides.
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
        """Return the number of digits in the files of a split."""
        return sum(len(labels) for _, labels in self._files(split))

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Return images from memory; at the first call, read the files."""
        chosen = torch.as_tensor(list(indices), dtype=torch.int64)
        images = torch.empty(len(chosen), *self.image_shape)
        label = torch.empty_like(chosen)
        start = 0
        for pixels, labels in self._files(split):
            here = (chosen >= start) & (chosen < start + len(labels))
            images[here] = pixels[chosen[here] - start].float() / 255
            label[here] = labels[chosen[here] - start]
            start += len(labels)
        assert ((chosen >= 0) & (chosen < start)).all(), "indices lie within the split"
        return Batch(images, label=label)

    def _files(self, split: str) -> list[tuple[Tensor, Tensor]]:
        """Return images and digits of the files of a split."""
        wanted = [name for name in SPLITS[split] if name in self._paths]
        if not wanted:
            files = [_file(name) for name in SPLITS[split]]
            require_file(self.name, self.root, files, self.remedy)
        for name in wanted:
            if name not in self._loaded:
                self._loaded[name] = _load(self._paths[name], OFFICIAL[name])
        return [self._loaded[name] for name in wanted]

    @cached_property
    def _paths(self) -> dict[str, Path]:
        """Find each file separately; they may lie in different folders."""
        names = [name for name in OFFICIAL if self.extra or name != "extra"]
        found = {name: find_file(self.root, [_file(name)]) for name in names}
        paths = {name: path for name, path in found.items() if path is not None}
        missing = [_file(name) for name in names if name not in paths]
        if paths and missing:
            LOG.warning("svhn: %s not found; continuing without", " and ".join(missing))
        return paths


def _file(name: str) -> str:
    return f"{name}_32x32.mat"


def _load(path: Path, official: int) -> tuple[Tensor, Tensor]:
    """Return images (N, 3, 32, 32) and digits of a file, after checking its layout."""
    with blame_file(path):
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
    # The view in the stored order: a copy could take gigabytes.
    return torch.from_numpy(pixels.transpose(3, 2, 0, 1)), labels


@hookimpl
def celstack_datasets() -> dict[str, type[Svhn]]:
    """Let recipes say ``use = "svhn"``."""
    return {"svhn": Svhn}

"""GTSRB-8: photographs of eight German traffic signs, from the official training archive."""

import re
from pathlib import Path
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from celstack import Batch, CelstackError, Source, hookimpl
from celstack_kit.dataset_support.archive_dataset import ArchiveDataset
from celstack_kit.formats.archive import Archive
from celstack_kit.formats.read_errors import LOG

ARCHIVE = "GTSRB_Final_Training_Images.zip"
FOLDER = "GTSRB/Final_Training/Images"
CLASSES = {
    3: "speed limit 60",
    7: "speed limit 100",
    9: "no overtaking",
    11: "right of way",
    17: "no entry",
    18: "caution",
    25: "road works",
    35: "straight ahead",
}
OFFICIAL = {3: 1410, 7: 1440, 9: 1470, 11: 1320, 17: 1110, 18: 1200, 25: 1500, 35: 1200}
"""Published number of images in each class: 10,650 in all."""


class Gtsrb8(ArchiveDataset):
    """The eight classes that the paper uses of GTSRB's training images, one sign per image.

    Read from ``GTSRB_Final_Training_Images.zip``, without unpacking it, or from its folder
    ``GTSRB/Final_Training/Images``, in ``root``; else in the folder that CELSTACK_DATA names,
    else in the user's cache. Images are resized to ``size`` (height, width), ignoring their
    aspect ratio. As in the paper there is one split, for training and evaluation; ``label``
    is the index in ``class_names``. All images are held in memory: 25 MB.
    """

    class_names = tuple(CLASSES.values())
    files = (ARCHIVE, FOLDER)
    # Not GTSRB-Training_fixed.zip of the same host, which is an earlier version.
    sources = (
        Source(
            f"https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/{ARCHIVE}",
            licence="see the homepage",
            homepage="https://benchmark.ini.rub.de/gtsrb_dataset.html",
            size=276_294_756,
            checksum="md5:f33fd80ac59bff73c82d25ab499e03a3",
            citation="Stallkamp et al., Man vs. computer: Benchmarking machine learning "
            "algorithms for traffic sign recognition, Neural Networks 32, 2012",
        ),
    )

    def __init__(
        self,
        root: Path | None = None,
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] = (28, 28),
        skip_broken: bool = False,
    ) -> None:
        super().__init__(root, size, skip_broken)

    def image_names(self, archive: Archive) -> list[str]:
        """Return the images of the eight classes, 10,650 in the official archive."""
        by_class = {number: _class_names(archive, number) for number in CLASSES}
        _check_counts({number: len(names) for number, names in by_class.items()})
        return [name for names in by_class.values() for name in names]

    def load_image(self, archive: Archive, name: str) -> tuple[Tensor, Tensor]:
        """Return an image and its class; images are in folders of their class number."""
        label = list(CLASSES).index(int(name.split("/")[0]))
        return self.resize(self.decode(archive, name)), torch.tensor(label)

    def make_batch(self, images: Tensor, labels: Tensor) -> Batch:
        """Return labeled images."""
        return Batch(images, label=labels)


def _class_names(archive: Archive, number: int) -> list[str]:
    """Return the images of a class, which must be those that its CSV table lists."""
    folder = f"{number:05}"
    table = f"{folder}/GT-{folder}.csv"
    if table not in archive:
        raise CelstackError(f"{archive.describe(table)}: missing; is this the official layout?")
    rows = archive.read(table).decode("utf-8", "replace").splitlines()[1:]
    listed = {f"{folder}/{row.split(';')[0]}" for row in rows if row.strip()}
    pattern = re.compile(rf"{folder}/\d{{5}}_\d{{5}}\.ppm")
    there = {name for name in archive.names if pattern.fullmatch(name)}
    if not there or listed != there:
        odd = min(listed ^ there, default=table)
        text = f"lists {len(listed)} images, but {len(there)} are there; see {odd}"
        raise CelstackError(f"{archive.describe(table)}: {text}")
    return sorted(there)


def _check_counts(counts: dict[int, int]) -> None:
    """Log a warning if the number of images in a class is not the published one."""
    odd = [f"{n} of {OFFICIAL[k]} in class {k}" for k, n in counts.items() if n != OFFICIAL[k]]
    if odd:
        LOG.warning("gtsrb8: not the published number of images: %s", ", ".join(odd))


@hookimpl
def celstack_datasets() -> dict[str, type[Gtsrb8]]:
    """Let recipes say ``use = "gtsrb8"``."""
    return {"gtsrb8": Gtsrb8}

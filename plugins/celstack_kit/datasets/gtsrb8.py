"""GTSRB-8: photographs of eight German traffic signs, from the official training archive."""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import torch
from annotated_types import Ge
from PIL import Image
from torch import Tensor

from celstack import Batch, CelstackError, Dataset, Source, hookimpl
from celstack.data.paths import find
from celstack_kit.formats.archive import Archive
from celstack_kit.formats.images import as_tensor, decode
from celstack_kit.formats.read_errors import LOG, sound

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
"""How many images of each class were published: 10,650 in all."""


class Gtsrb8(Dataset):
    """The eight classes of the paper out of GTSRB's training images, one sign to an image.

    Read from ``GTSRB_Final_Training_Images.zip``, which stays packed, or from the folder
    ``GTSRB/Final_Training/Images`` that it unpacks to, in ``root``; else in the folder that
    CELSTACK_DATA names, else in the user's cache. Images are squashed to ``size`` (height,
    width). As in the paper there is one split, to learn from and to be judged on; ``label``
    counts the classes from 0 in the order of ``class_names``. All is held in memory: 25 MB.
    """

    splits = ("train",)
    most_objects = 1
    class_names = tuple(CLASSES.values())
    files = (ARCHIVE, FOLDER)
    # Not GTSRB-Training_fixed.zip of the same host: that is the set of an earlier stage.
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
        self.root, self.size, self.skip_broken = root, size, skip_broken

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colors of the asked size."""
        return (3, *self.size)

    def count(self, split: str) -> int:
        """Return how many images there are: 10,650 in the official archive."""
        assert split in self.splits
        return len(self._all[0])

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Look the images up; the first time, all are decoded."""
        assert split in self.splits
        images, labels = self._all
        chosen = torch.as_tensor(list(indices), dtype=torch.int64)
        return Batch(images[chosen].float() / 255, label=labels[chosen])

    # Tensors, because torch lends them to worker processes without a copy.
    @cached_property
    def _all(self) -> tuple[Tensor, Tensor]:
        with Archive(find(self.name, self.root, self.files, self.remedy), FOLDER) as archive:
            listed = {number: _listed(archive, number) for number in CLASSES}
            _compare({number: len(names) for number, names in listed.items()})
            names = [name for of_class in listed.values() for name in of_class]

            def load(name: str) -> Tensor:
                image = decode(archive.read(name), archive.say(name))
                height, width = self.size
                return as_tensor(image.resize((width, height), Image.Resampling.BILINEAR))

            loaded = sound(self.name, names, load, self.skip_broken)
        order = {f"{number:05}": label for label, number in enumerate(CLASSES)}
        labels = [order[name.split("/")[0]] for name, _ in loaded]
        return torch.stack([image for _, image in loaded]), torch.tensor(labels)


def _listed(archive: Archive, number: int) -> list[str]:
    """List the images of a class, if they are those that its table has."""
    folder = f"{number:05}"
    table = f"{folder}/GT-{folder}.csv"
    if table not in archive:
        raise CelstackError(f"{archive.say(table)}: missing; is this the official layout?")
    rows = archive.read(table).decode("utf-8", "replace").splitlines()[1:]
    listed = {f"{folder}/{row.split(';')[0]}" for row in rows if row.strip()}
    pattern = re.compile(rf"{folder}/\d{{5}}_\d{{5}}\.ppm")
    there = {name for name in archive.names if pattern.fullmatch(name)}
    if not there or listed != there:
        odd = min(listed ^ there, default=table)
        text = f"lists {len(listed)} images, but {len(there)} are there; see {odd}"
        raise CelstackError(f"{archive.say(table)}: {text}")
    return sorted(there)


def _compare(counts: dict[int, int]) -> None:
    """Log it if these are not as many images as were published."""
    odd = [f"{n} of {OFFICIAL[k]} in class {k}" for k, n in counts.items() if n != OFFICIAL[k]]
    if odd:
        LOG.warning("gtsrb8: not the published number of images: %s", ", ".join(odd))


@hookimpl
def celstack_datasets() -> dict[str, type[Gtsrb8]]:
    """Let recipes say ``use = "gtsrb8"``."""
    return {"gtsrb8": Gtsrb8}

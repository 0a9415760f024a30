"""Weizmann Horse: photographs of horses, each with its silhouette."""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge
from PIL import Image
from torch import Tensor

from celstack import Batch, CelstackError, Dataset, hookimpl
from celstack.data.paths import find
from celstack_kit.formats.archive import Archive
from celstack_kit.formats.images import as_tensor, decode
from celstack_kit.formats.read_errors import LOG, sound

ARCHIVE = "weizmann_horse_db.tar"
FOLDER = "weizmann_horse_db"
PUBLISHED = (327, 328)
"""The paper counts 327 pairs; the copies in circulation have 328, two of them twice."""


class WeizmannHorse(Dataset):
    """One horse to an image, seen from the side, and which pixels are horse.

    Read from ``weizmann_horse_db.tar``, which stays packed, or from the folder
    ``weizmann_horse_db`` with ``rgb`` and ``figure_ground``, in ``root``; else in the folder
    that CELSTACK_DATA names, else in the user's cache. Images are squashed to ``size``
    (height, width). A pixel of a silhouette is horse above 127, since JPEG blurs its edge.
    As in the paper there is one split, to learn from and to be judged on.
    """

    splits = ("train",)
    most_objects = 1
    class_names = ("horse",)
    files = (ARCHIVE, FOLDER)
    elsewhere = (
        "unpack weizmann_horse_db.tar.gz, which its author offered at "
        "https://www.msri.org/people/members/eranb/"
    )

    def __init__(
        self,
        root: Path | None = None,
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] = (128, 128),
        skip_broken: bool = False,
    ) -> None:
        self.root, self.size, self.skip_broken = root, size, skip_broken

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colors of the asked size."""
        return (3, *self.size)

    def count(self, split: str) -> int:
        """Return how many pairs there are."""
        assert split in self.splits
        return len(self._all[0])

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Look the images up; the first time, all are decoded."""
        assert split in self.splits
        images, horses = self._all
        chosen = torch.as_tensor(list(indices), dtype=torch.int64)
        horse = horses[chosen].long()
        return Batch(images[chosen].float() / 255, instances=horse, classes=horse.clone())

    # Tensors, because torch lends them to worker processes without a copy.
    @cached_property
    def _all(self) -> tuple[Tensor, Tensor]:
        with Archive(find(self.name, self.root, self.files, self.remedy), FOLDER) as archive:

            def load(name: str) -> tuple[Tensor, Tensor]:
                return self._image(archive, name), self._horse(archive, name)

            loaded = sound(self.name, _pairs(archive), load, self.skip_broken)
        images, horses = zip(*(pair for _, pair in loaded), strict=True)
        return torch.stack(images), torch.stack(horses)

    def _image(self, archive: Archive, name: str) -> Tensor:
        image = _decoded(archive, f"rgb/{name}")
        return as_tensor(image.resize(self.size[::-1], Image.Resampling.BILINEAR))

    def _horse(self, archive: Archive, name: str) -> Tensor:
        """Decide in the silhouette's own pixels, which are not as many as the image's."""
        gray = np.asarray(_decoded(archive, f"figure_ground/{name}").convert("L"))
        inside = Image.fromarray((gray > 127).astype(np.uint8))
        resized = inside.resize(self.size[::-1], Image.Resampling.NEAREST)
        return torch.from_numpy(np.array(resized))


def _decoded(archive: Archive, name: str) -> Image.Image:
    return decode(archive.read(name), archive.say(name))


def _pairs(archive: Archive) -> list[str]:
    """List the names that both an image and a silhouette have."""
    pattern = re.compile(r"(rgb|figure_ground)/(horse\d{3}\.jpg)")
    matches = [match for name in archive.names if (match := pattern.fullmatch(name))]
    images = {match[2] for match in matches if match[1] == "rgb"}
    horses = {match[2] for match in matches if match[1] == "figure_ground"}
    if not matches:
        text = "no rgb/horse001.jpg or the like in it; is this the official layout?"
        raise CelstackError(f"{archive.path}: {text}")
    if images != horses:
        text = f"{len(images)} images, but {len(horses)} silhouettes"
        raise CelstackError(f"{archive.path}: {text}; see {min(images ^ horses)}")
    if len(images) not in PUBLISHED:
        LOG.warning("weizmann_horse: %d pairs, but %d or %d are known", len(images), *PUBLISHED)
    return sorted(images)


@hookimpl
def celstack_datasets() -> dict[str, type[WeizmannHorse]]:
    """Let recipes say ``use = "weizmann_horse"``."""
    return {"weizmann_horse": WeizmannHorse}

"""Weizmann Horse: photographs of horses, each with its silhouette."""

import re
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge
from PIL import Image
from torch import Tensor

from celstack import Batch, CelstackError, hookimpl
from celstack_kit.dataset_support.archive_dataset import ArchiveDataset
from celstack_kit.formats.archive import Archive
from celstack_kit.formats.read_errors import LOG

ARCHIVE = "weizmann_horse_db.tar"
FOLDER = "weizmann_horse_db"
PUBLISHED = (327, 328)
"""Numbers of pairs: 327 in the paper, 328 in circulating copies, two of them duplicates."""


class WeizmannHorse(ArchiveDataset):
    """One horse per image, in side view, with its segmentation mask.

    Read from ``weizmann_horse_db.tar``, without unpacking it, or from the folder
    ``weizmann_horse_db`` with ``rgb`` and ``figure_ground``, in ``root``; else in the folder
    that CELSTACK_DATA names, else in the user's cache. Images are resized to ``size`` (height,
    width), ignoring their aspect ratio. Mask pixels above 127 are horse, since JPEG blurs the
    edges. As in the paper there is one split, for training and evaluation.
    """

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
        super().__init__(root, size, skip_broken)

    def image_names(self, archive: Archive) -> list[str]:
        """Return the file names that both an image and a silhouette have."""
        return _pairs(archive)

    def load_image(self, archive: Archive, name: str) -> tuple[Tensor, Tensor]:
        """Return an image and its silhouette, 1 for horse."""
        # Thresholded before resizing: silhouettes differ from their images in size.
        gray = np.asarray(self.decode(archive, f"figure_ground/{name}").convert("L"))
        inside = Image.fromarray((gray > 127).astype(np.uint8))
        resized = inside.resize(self.size[::-1], Image.Resampling.NEAREST)
        image = self.resize(self.decode(archive, f"rgb/{name}"))
        return image, torch.from_numpy(np.array(resized))

    def make_batch(self, images: Tensor, labels: Tensor) -> Batch:
        """Return images with the silhouettes as instances and as classes."""
        horse = labels.long()
        return Batch(images, instances=horse, classes=horse.clone())


def _pairs(archive: Archive) -> list[str]:
    """Return the names that both folders have, which must be all."""
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

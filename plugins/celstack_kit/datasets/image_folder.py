"""Image folder: your own images, of any size."""

import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge, Interval
from PIL import Image, ImageOps
from torch import Tensor

from celstack import Batch, CelstackError, Dataset, hookimpl
from celstack_kit.formats.images import as_tensor, decode, decode_ids, upright_size
from celstack_kit.formats.read_errors import load_valid

MAX_MEASURED_IMAGES = 200
"""Images whose size is read to choose the canvas."""
CANVAS_SIDE_PIXELS = 64
"""Longer side of the suggested canvas."""
MAX_SPRITES = 40
"""Largest suggestion; the paper uses 40 sprites for 15,000 images."""
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm", ".pgm", ".pbm"}


class ImageFolder(Dataset):
    """All images in a folder and its subfolders, sorted by name.

    Each is rotated according to its EXIF data, resized to just cover ``size`` (height, width),
    and center-cropped. Transparent pixels become white. Hidden files are ignored.

    All images are in the split ``train``, for training and evaluation. ``held_out`` is the
    share of them that forms a split ``test`` instead, chosen by a hash of their names.

    Ground truth is optional. With ``labels``, the top-level subfolder of ``root`` that contains
    an image is its class. ``masks`` is a folder with a mask for each image, of the same size
    and relative name (or with the suffix ``.png``): each pixel holds the id of its object, 0
    for background.

    An image that cannot be read raises an error when it is needed. With ``skip_broken``, all
    are decoded at the first use instead, and broken ones are left out and counted in the log.
    Images are read on demand: only their names are held in memory.
    """

    def __init__(
        self,
        root: Path,
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] = (128, 128),
        held_out: Annotated[float, Interval(ge=0, lt=1)] = 0.0,
        labels: bool = False,
        masks: Path | None = None,
        skip_broken: bool = False,
    ) -> None:
        self.root, self.size, self.held_out = root.expanduser(), size, held_out
        self.masks = None if masks is None else masks.expanduser()
        self.labels, self.skip_broken = labels, skip_broken
        self.splits = ("train", "test") if held_out else ("train",)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three channels of the given size."""
        return (3, *self.size)

    @cached_property
    def class_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the class folders, if ``labels`` is set."""
        if not self.labels:
            return ()
        names = [name for split in self.splits for name in self._names[split]]
        for name in names:
            if "/" not in name:
                raise CelstackError(f"{self.root / name}: labels need a folder for each class")
        return tuple(sorted({name.split("/")[0] for name in names}))

    def count(self, split: str) -> int:
        """Return the number of images in a split."""
        return len(self._names[split])

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Read and decode the files."""
        names = [self._names[split][index] for index in indices]
        images = torch.stack([self._image(name) for name in names])
        instances = torch.stack([self._mask(name) for name in names]) if self.masks else None
        label = None
        if self.labels:
            label = torch.tensor([self.class_names.index(n.split("/")[0]) for n in names])
        return Batch(images.float() / 255, instances=instances, label=label)

    def suggest(self) -> dict[str, Any]:
        """Suggest values for "auto": canvas size from the median aspect ratio, and others.

        More images mean more sprites and fewer epochs.
        """
        # Only file names and the headers of some files are read; no image is decoded.
        names = self._list_images()
        count = max(1, round((1 - self.held_out) * len(names)))
        ratios = [
            self._aspect_ratio(name) for name in names[:: -(-len(names) // MAX_MEASURED_IMAGES)]
        ]
        known = [ratio for ratio in ratios if ratio is not None] or [1.0]
        ratio = min(2.0, max(0.5, median(known)))
        height, width = (
            4 * round(CANVAS_SIDE_PIXELS / 4 * min(1.0, part)) for part in (1 / ratio, ratio)
        )
        sigma = round(min(height, width) / 6, 1)
        return {
            "dataset.size": [height, width],
            "sprites.size": [height, width],
            "sprites.count": min(MAX_SPRITES, max(2, round((count / 2) ** 0.5))),
            "sprites.mask_sigma": sigma,
            "selector.window": sigma,
            "stages[].epochs": min(60, max(2, round(4000 / count))),
            "evaluation.images": min(1000, count),
        }

    def _aspect_ratio(self, name: str) -> float | None:
        """Return width / height of an image, or None if it cannot be read."""
        try:
            width, height = upright_size(self.root / name)
        except CelstackError:
            return None
        return width / height

    def _image(self, name: str) -> Tensor:
        # The JPEG decoder may downscale to twice the size; proper resampling does the rest.
        image = decode(self.root / name, str(self.root / name), min_side=2 * max(self.size))
        return as_tensor(ImageOps.fit(image, self.size[::-1], Image.Resampling.BILINEAR))

    def _mask(self, name: str) -> Tensor:
        path = self._mask_path(name)
        ids = decode_ids(path)
        width, height = upright_size(self.root / name)
        if ids.shape != (height, width):
            text = f"{ids.shape[1]} x {ids.shape[0]}, but its image is {width} x {height}"
            raise CelstackError(f"{path}: the mask is {text}")
        fitted = ImageOps.fit(Image.fromarray(ids), self.size[::-1], Image.Resampling.NEAREST)
        return torch.from_numpy(np.array(fitted)).long()

    def _mask_path(self, name: str) -> Path:
        assert self.masks is not None
        candidates = [self.masks / name, (self.masks / name).with_suffix(".png")]
        for path in candidates:
            if path.is_file():
                return path
        tried = " or ".join(map(str, dict.fromkeys(candidates)))
        raise CelstackError(f"{self.root / name}: it has no mask {tried}")

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """Names of the images of each split, relative to ``root``."""
        names = self._list_images()
        if self.masks is not None:
            for name in names:
                self._mask_path(name)
        if self.skip_broken:
            names = [name for name, _ in load_valid(self.name, names, self._validate, True)]
        if not self.held_out:
            return {"train": names}
        # Ordered by a hash of the name: pseudorandom, but the same on every machine.
        mixed = sorted(names, key=lambda name: sha256(os.fsencode(name)).digest())
        out = set(mixed[: round(self.held_out * len(names))])
        if not 0 < len(out) < len(names):
            text = f"held_out: {self.held_out} of {len(names)} images leaves a split empty"
            raise CelstackError(text)
        return {
            "train": [name for name in names if name not in out],
            "test": [name for name in names if name in out],
        }

    def _list_images(self) -> list[str]:
        if not self.root.is_dir():
            raise CelstackError(f"{self.name}: root: there is no folder {self.root.absolute()}")
        apart = None if self.masks is None else self.masks.resolve()
        names = []
        for where, below, files in os.walk(self.root, onerror=_raise_walk_error):
            folder = Path(where)
            below[:] = [n for n in below if n[0] != "." and (folder / n).resolve() != apart]
            images = (n for n in files if n[0] != "." and Path(n).suffix.lower() in SUFFIXES)
            names += [(folder / name).relative_to(self.root).as_posix() for name in images]
        if not names:
            kinds = ", ".join(sorted(suffix[1:] for suffix in SUFFIXES))
            raise CelstackError(f"{self.root}: no images in it ({kinds})")
        return sorted(names)

    def _validate(self, name: str) -> None:
        # Decoded fully, since a truncated JPEG opens without an error.
        decode(self.root / name, str(self.root / name), min_side=1)
        if self.masks is not None:
            self._mask(name)


def _raise_walk_error(error: OSError) -> None:
    raise CelstackError(f"{error.filename}: cannot be listed ({error.strerror})") from error


@hookimpl
def celstack_datasets() -> dict[str, type[ImageFolder]]:
    """Let recipes say ``use = "image_folder"``."""
    return {"image_folder": ImageFolder}

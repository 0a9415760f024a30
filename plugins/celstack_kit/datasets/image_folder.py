"""Image folder: anybody's images, of any size."""

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
from celstack_kit.formats.read_errors import sound

LOOKED_AT = 200
"""How many images are measured to choose a canvas."""
LONGER = 64
"""The longer side of a canvas that is chosen."""
MOST_SPRITES = 40
"""As many as the paper takes for 15,000 images."""
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm", ".pgm", ".pbm"}


class ImageFolder(Dataset):
    """All images in a folder and the folders in it, in the order of their names.

    Each is turned as its camera was held, resized until it just covers ``size`` (height,
    width), and cropped to its center. What shows through is white. Hidden files are left out.

    All images are in the split ``train``, to learn from and to be judged on. ``held_out`` is
    the part of them that goes to a split ``test`` instead, chosen by their names.

    Ground truth is optional. With ``labels``, the first folder in ``root`` that an image
    lies in is its class. ``masks`` is a folder with a mask for each image, of the same size
    and under the same relative name (or with the suffix ``.png``): each pixel holds the
    number of its object, 0 for background.

    An image that cannot be read is an error once it is its turn. With ``skip_broken``, each
    is tried at the first use instead, and those that fail are left out and counted in the
    log. Images are read when they are needed: only names stay in memory.
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
        """Three colors of the asked size."""
        return (3, *self.size)

    @cached_property
    def class_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the class folders, if they are to be looked at."""
        if not self.labels:
            return ()
        names = [name for split in self.splits for name in self._names[split]]
        for name in names:
            if "/" not in name:
                raise CelstackError(f"{self.root / name}: labels need a folder for each class")
        return tuple(sorted({name.split("/")[0] for name in names}))

    def count(self, split: str) -> int:
        """Return how many images were found."""
        return len(self._names[split])

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Read the files."""
        names = [self._names[split][index] for index in indices]
        images = torch.stack([self._image(name) for name in names])
        instances = torch.stack([self._mask(name) for name in names]) if self.masks else None
        label = None
        if self.labels:
            label = torch.tensor([self.class_names.index(n.split("/")[0]) for n in names])
        return Batch(images.float() / 255, instances=instances, label=label)

    def suggest(self) -> dict[str, Any]:
        """Choose a canvas of their usual proportions, and sprites for a few images each.

        The more images, the more sprites, and the fewer epochs.
        """
        # Files are counted, and some of them asked for their size: none is decoded.
        names = self._found()
        count = max(1, round((1 - self.held_out) * len(names)))
        shapes = [self._shape(name) for name in names[:: -(-len(names) // LOOKED_AT)]]
        known = [shape for shape in shapes if shape is not None] or [1.0]
        shape = min(2.0, max(0.5, median(known)))
        height, width = (4 * round(LONGER / 4 * min(1.0, part)) for part in (1 / shape, shape))
        sigma = round(min(height, width) / 6, 1)
        return {
            "size": [height, width],
            "count": min(MOST_SPRITES, max(2, round((count / 2) ** 0.5))),
            "mask_sigma": sigma,
            "window": sigma,
            "epochs": min(60, max(2, round(4000 / count))),
            "images": min(1000, count),
        }

    def _shape(self, name: str) -> float | None:
        """Return how wide an image is for its height; None if it cannot be told."""
        try:
            width, height = upright_size(self.root / name)
        except CelstackError:
            return None
        return width / height

    def _image(self, name: str) -> Tensor:
        # Twice the size is left for resizing, which is better at it than JPEG.
        image = decode(self.root / name, str(self.root / name), least=2 * max(self.size))
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
        """List the images of each split by their names in ``root``."""
        names = self._found()
        if self.masks is not None:
            for name in names:
                self._mask_path(name)
        if self.skip_broken:
            names = [name for name, _ in sound(self.name, names, self._try, True)]
        if not self.held_out:
            return {"train": names}
        # By name, so that the choice looks random and yet is the same everywhere.
        mixed = sorted(names, key=lambda name: sha256(os.fsencode(name)).digest())
        out = set(mixed[: round(self.held_out * len(names))])
        if not 0 < len(out) < len(names):
            text = f"held_out: {self.held_out} of {len(names)} images leaves a split empty"
            raise CelstackError(text)
        return {
            "train": [name for name in names if name not in out],
            "test": [name for name in names if name in out],
        }

    def _found(self) -> list[str]:
        if not self.root.is_dir():
            raise CelstackError(f"{self.name}: root: there is no folder {self.root.absolute()}")
        apart = None if self.masks is None else self.masks.resolve()
        names = []
        for where, below, files in os.walk(self.root, onerror=_refuse):
            folder = Path(where)
            below[:] = [n for n in below if n[0] != "." and (folder / n).resolve() != apart]
            images = (n for n in files if n[0] != "." and Path(n).suffix.lower() in SUFFIXES)
            names += [(folder / name).relative_to(self.root).as_posix() for name in images]
        if not names:
            kinds = ", ".join(sorted(suffix[1:] for suffix in SUFFIXES))
            raise CelstackError(f"{self.root}: no images in it ({kinds})")
        return sorted(names)

    def _try(self, name: str) -> None:
        # In full: a JPEG that ends too soon looks well until its last pixel is asked for.
        decode(self.root / name, str(self.root / name), least=1)
        if self.masks is not None:
            self._mask(name)


def _refuse(error: OSError) -> None:
    raise CelstackError(f"{error.filename}: cannot be listed ({error.strerror})") from error


@hookimpl
def celstack_datasets() -> dict[str, type[ImageFolder]]:
    """Let recipes say ``use = "image_folder"``."""
    return {"image_folder": ImageFolder}

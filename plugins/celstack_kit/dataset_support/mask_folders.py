"""Read images with masks from folders of PNG files: ``images``, ``masks``, ``sem_masks``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.formats.images import decode, decode_ids
from celstack_kit.formats.read_errors import blame_file

FOLDERS = ("images", "masks", "sem_masks")


def read_mask_folders(
    path: Path, convert: Callable[[LabeledImage], LabeledImage | None]
) -> Iterator[LabeledImage | CelstackError]:
    """Yield the images of a folder in numerical order, and errors in place of damaged ones.

    ``masks`` hold the instance id of each pixel of the image with the same number, and
    ``sem_masks`` its class id; 0 is background. An error names the file.

    Args:
        path: The folder that contains the three folders.
        convert: Crops, resizes or relabels an image; images for which it returns None are
            left out.
    """
    for index in _indices(path):
        try:
            read = _read(path, f"{index}.png")
        except CelstackError as error:
            yield error
            continue
        try:
            converted = convert(read)
        except CelstackError as error:
            yield CelstackError(f"{path / FOLDERS[0] / index}.png: {error}")
            continue
        if converted is not None:
            yield converted


def _indices(path: Path) -> list[str]:
    """Return the numbers of the images, in order; all three folders must have the same."""
    found = {kind: _numbers(path / kind) for kind in FOLDERS}
    everywhere = set.intersection(*found.values())
    if odd := set.union(*found.values()) - everywhere:
        counts = ", ".join(f"{len(numbers)} {kind}" for kind, numbers in found.items())
        raise CelstackError(f"{path}: {counts}; see {min(odd, key=_numeric_order)}.png")
    if not everywhere:
        raise CelstackError(f"{path / FOLDERS[0]}: no 0.png or the like in it")
    return sorted(everywhere, key=_numeric_order)


def _numbers(folder: Path) -> set[str]:
    if not folder.is_dir():
        raise CelstackError(f"{folder}: there is no such folder; is this the right layout?")
    with blame_file(folder):
        names = [re.fullmatch(r"(\d+)\.png", file.name) for file in folder.iterdir()]
    return {name[1] for name in names if name}


def _numeric_order(number: str) -> tuple[int, str]:
    return int(number), number


def _read(path: Path, name: str) -> LabeledImage:
    file = path / FOLDERS[0] / name
    image = np.array(decode(file, str(file)))
    instances, classes = (_ids(path / kind / name, image.shape[:2]) for kind in FOLDERS[1:])
    return LabeledImage(image, instances, classes)


def _ids(file: Path, size: tuple[int, ...]) -> NDArray[np.uint8]:
    ids = decode_ids(file)
    if ids.shape != size:
        raise CelstackError(f"{file}: the mask is {ids.shape}, but its image {size}")
    if ids.max() > 255:
        raise CelstackError(f"{file}: an id of {ids.max()}, but a mask has at most 255")
    return ids.astype(np.uint8)

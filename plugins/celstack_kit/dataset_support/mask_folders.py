"""Scenes in folders of PNG files: ``images``, ``masks`` and ``sem_masks``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.formats.images import decode, decode_ids
from celstack_kit.formats.read_errors import naming

FOLDERS = ("images", "masks", "sem_masks")


def folder_scenes(
    path: Path, convert: Callable[[Labeled], Labeled | None]
) -> Iterator[Labeled | CelstackError]:
    """Read the scenes of a folder in the order of their numbers.

    ``masks`` hold the instance of each pixel of the image with the same number and
    ``sem_masks`` its class, 0 for background. A damaged scene comes as the error that names
    the file. ``convert`` may crop and resize a scene, or return None where it is none of ours.
    """
    for index in _indices(path):
        try:
            read = _read(path, f"{index}.png")
        except CelstackError as error:
            yield error
            continue
        try:
            scene = convert(read)
        except CelstackError as error:
            yield CelstackError(f"{path / FOLDERS[0] / index}.png: {error}")
            continue
        if scene is not None:
            yield scene


def _indices(path: Path) -> list[str]:
    """List the numbers that all three folders have, in their order."""
    found = {kind: _numbers(path / kind) for kind in FOLDERS}
    everywhere = set.intersection(*found.values())
    if odd := set.union(*found.values()) - everywhere:
        counts = ", ".join(f"{len(numbers)} {kind}" for kind, numbers in found.items())
        raise CelstackError(f"{path}: {counts}; see {min(odd, key=_order)}.png")
    if not everywhere:
        raise CelstackError(f"{path / FOLDERS[0]}: no 0.png or the like in it")
    return sorted(everywhere, key=_order)


def _numbers(folder: Path) -> set[str]:
    if not folder.is_dir():
        raise CelstackError(f"{folder}: there is no such folder; is this the right layout?")
    with naming(folder):
        names = [re.fullmatch(r"(\d+)\.png", file.name) for file in folder.iterdir()]
    return {name[1] for name in names if name}


def _order(number: str) -> tuple[int, str]:
    return int(number), number


def _read(path: Path, name: str) -> Labeled:
    file = path / FOLDERS[0] / name
    image = np.array(decode(file, str(file)))
    instances, classes = (_ids(path / kind / name, image.shape[:2]) for kind in FOLDERS[1:])
    return Labeled(image, instances, classes)


def _ids(file: Path, size: tuple[int, ...]) -> NDArray[np.uint8]:
    ids = decode_ids(file)
    if ids.shape != size:
        raise CelstackError(f"{file}: the mask is {ids.shape}, but its image {size}")
    if ids.max() > 255:
        raise CelstackError(f"{file}: an id of {ids.max()}, but a mask has at most 255")
    return ids.astype(np.uint8)

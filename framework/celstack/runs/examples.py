"""Examples: which images of an evaluation are worth looking at, and pictures of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from celstack.errors import CelstackError
from celstack.recipe.assembly import Assembly
from celstack.text import describe_error

SHARES = {"best": 8, "worst": 8, "random": 16}
"""How many examples there are of each kind."""
FOLDER = "examples"


class Example(NamedTuple):
    """An image of an evaluation, by its number, and why it was chosen."""

    kind: str
    number: int


def choose(
    scores: Mapping[str, Sequence[float]], percent: Iterable[str], images: int
) -> list[Example]:
    """Choose the best and the worst images, by their scores, and some at random.

    Of scores in percent more is better, and they count first; of others, which are errors,
    less is better. No image is chosen twice; where none has a score, all are random.
    """
    shares = set(percent)
    ranked = [(1.0, scores[name]) for name in scores if name in shares]
    ranked += [(-1.0, scores[name]) for name in scores if name not in shares]

    def merit(number: int) -> tuple[float, ...]:
        return tuple(sign * values[number] for sign, values in ranked)

    known = [n for n in range(images) if ranked and all(map(math.isfinite, merit(n)))]
    known.sort(key=merit, reverse=True)
    # Few images must not all be extremes.
    ends = [min(SHARES[kind], len(known) // 4) for kind in ("best", "worst")]
    chosen = [Example("best", number) for number in known[: ends[0]]]
    chosen += [Example("worst", number) for number in reversed(known[len(known) - ends[1] :])]
    left = sorted(set(range(images)) - {example.number for example in chosen})
    some = random.Random(0).sample(left, min(SHARES["random"], len(left)))
    return [*chosen, *(Example("random", number) for number in sorted(some))]


def file_names(examples: Sequence[Example]) -> list[str]:
    """Name the files of examples so that their order, kinds and numbers can be read again."""
    return [f"{n:02d}-{kind}-{number}.png" for n, (kind, number) in enumerate(examples)]


def find_stored(folder: Path) -> dict[Example, Path]:
    """Find the examples that a run directory keeps, in the order they were chosen in."""
    found = {}
    for path in sorted((folder / FOLDER).glob("*.png")):
        _, kind, number = [*path.stem.split("-"), "", ""][:3]
        if kind in SHARES and number.isdecimal():
            found[Example(kind, int(number))] = path
    return found


def read_stored(path: Path, image_shape: tuple[int, int, int]) -> Float[Tensor, "C H W"]:
    """Read the image of an example as a model takes it, or say why that cannot be."""
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            pixels = np.array(picture.convert("L" if image_shape[0] == 1 else "RGB"))
    # Files that are damaged fail in many ways.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error
    image = torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1)
    if image.shape != image_shape:
        height, width = image_shape[1:]
        raise CelstackError(f"{path}: is not {width} x {height}, as the run's images are")
    return image.float() / 255


class Examples(NamedTuple):
    """Examples and their images."""

    chosen: list[Example]
    images: Float[Tensor, "B C H W"]


def find_examples(folder: Path, assembly: Assembly, most: int = 32) -> Examples:
    """Return the examples that a run keeps, or images of its dataset where it keeps none yet.

    Those of the dataset are spread over all of the split that the run is judged on. Where
    they are not on this machine, that is said.
    """
    stored = find_stored(folder)
    if stored:
        shape = assembly.dataset.image_shape
        images = torch.stack([read_stored(path, shape) for path in stored.values()])
        return Examples(list(stored), images)
    split = assembly.evaluation.split
    try:
        total = assembly.dataset.count(split)
        count = min(most, total)
        numbers = [n * total // count for n in range(count)]
        images = assembly.dataset.read(split, numbers).images
    except OSError as error:
        raise CelstackError(
            f"{assembly.dataset.name}: no images: {describe_error(error)}"
        ) from error
    return Examples([Example("random", number) for number in numbers], images)

"""Examples: the best, the worst and some random images of an evaluation."""

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
from celstack.runs.directory import EXAMPLES
from celstack.text import describe_error

EXAMPLES_PER_KIND = {"best": 8, "worst": 8, "random": 16}
MAX_DATASET_EXAMPLES = 32
"""How many images of the dataset stand in for examples that a run has not stored yet."""


class Example(NamedTuple):
    """An image of an evaluation: its number, and why it was chosen (``best``, ...)."""

    kind: str
    number: int


def choose_examples(
    scores: Mapping[str, Sequence[float]], percent: Iterable[str], images: int
) -> list[Example]:
    """Choose the best and the worst images, by their scores, and some at random.

    Args:
        scores: The scores of each image, by metric.
        percent: The metrics in percent, of which more is better. They take precedence over
            the others, which are errors.
        images: How many images there are.

    Returns:
        Examples of which no two have the same image; all random if no image has a score.
    """
    in_percent = set(percent)
    ranked = [(1.0, scores[name]) for name in scores if name in in_percent]
    ranked += [(-1.0, scores[name]) for name in scores if name not in in_percent]

    def rank(number: int) -> tuple[float, ...]:
        return tuple(sign * values[number] for sign, values in ranked)

    known = [n for n in range(images) if ranked and all(map(math.isfinite, rank(n)))]
    known.sort(key=rank, reverse=True)
    # Of few images, not all should be extremes.
    ends = [min(EXAMPLES_PER_KIND[kind], len(known) // 4) for kind in ("best", "worst")]
    chosen = [Example("best", number) for number in known[: ends[0]]]
    chosen += [Example("worst", number) for number in reversed(known[len(known) - ends[1] :])]
    left = sorted(set(range(images)) - {example.number for example in chosen})
    some = random.Random(0).sample(left, min(EXAMPLES_PER_KIND["random"], len(left)))
    return [*chosen, *(Example("random", number) for number in sorted(some))]


def example_file_names(examples: Sequence[Example]) -> list[str]:
    """Return file names from which ``find_stored`` recovers order, kinds and numbers."""
    return [f"{n:02d}-{kind}-{number}.png" for n, (kind, number) in enumerate(examples)]


def find_stored(folder: Path) -> dict[Example, Path]:
    """Return the paths of the examples that a run has stored, in their original order."""
    found = {}
    for path in sorted((folder / EXAMPLES).glob("*.png")):
        _, kind, number = [*path.stem.split("-"), "", ""][:3]
        if kind in EXAMPLES_PER_KIND and number.isdecimal():
            found[Example(kind, int(number))] = path
    return found


def read_stored(path: Path, image_shape: tuple[int, int, int]) -> Float[Tensor, "C H W"]:
    """Read the image of a stored example as a tensor in [0, 1]."""
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            pixels = np.array(picture.convert("L" if image_shape[0] == 1 else "RGB"))
    # Damaged files raise errors of many types.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error
    image = torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1)
    if image.shape != image_shape:
        height, width = image_shape[1:]
        raise CelstackError(
            f"{path}: expected {width} x {height} pixels, as in the run's dataset"
        )
    return image.float() / 255


class Examples(NamedTuple):
    """Examples and their images."""

    chosen: list[Example]
    images: Float[Tensor, "B C H W"]


def find_examples(
    folder: Path, assembly: Assembly, limit: int = MAX_DATASET_EXAMPLES
) -> Examples:
    """Return the examples that a run has stored, else up to ``limit`` images of its dataset.

    Images of the dataset are spread evenly over the evaluation split. If they cannot be
    read on this machine, a CelstackError is raised.
    """
    stored = find_stored(folder)
    if stored:
        shape = assembly.dataset.image_shape
        images = torch.stack([read_stored(path, shape) for path in stored.values()])
        return Examples(list(stored), images)
    split = assembly.evaluation.split
    try:
        total = assembly.dataset.count(split)
        count = min(limit, total)
        numbers = [n * total // count for n in range(count)]
        images = assembly.dataset.read(split, numbers).images
    except OSError as error:
        raise CelstackError(
            f"{assembly.dataset.name}: cannot read images: {describe_error(error)}"
        ) from error
    return Examples([Example("random", number) for number in numbers], images)

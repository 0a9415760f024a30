"""`celstack look`: draw the training images of a recipe."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from celstack.cli.commands.run import add_overrides
from celstack.errors import CelstackError
from celstack.text import did_you_mean

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recipe", help="path of a recipe, or name of a bundled one")
    add_overrides(parser)
    parser.add_argument(
        "--split", metavar="NAME", default="train", help="split to draw from (default: train)"
    )
    parser.add_argument(
        "--images", type=int, metavar="N", default=24, help="number of images (default: 24)"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="image file to write (default: DATASET.png)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Draw some images of the recipe's dataset, with their ground truth."""
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    resolved = resolve(read_recipe(arguments.recipe, arguments.set), catalog)
    if arguments.images < 1:
        raise CelstackError(f"--images {arguments.images}: must be at least 1")

    from celstack.cli.output import print_line
    from celstack.evaluation.visualize import draw_batch
    from celstack.recipe.build import assemble

    dataset = assemble(resolved, catalog).dataset
    _check_split(dataset, arguments.split)
    total = dataset.count(arguments.split)
    count = min(total, arguments.images)
    # Spread over the whole split, because datasets are often ordered by class.
    batch = dataset.read(arguments.split, [n * total // count for n in range(count)])
    path = Path(arguments.out or f"{dataset.name}.png")
    picture = draw_batch(batch)
    try:
        picture.save(path)
    except ValueError:
        raise CelstackError(
            f"--out {path}: not the name of an image file, such as x.png"
        ) from None
    except OSError as error:
        raise CelstackError(f"--out {path}: cannot be written: {error.strerror}") from error
    known = [name for name in ("instances", "classes") if getattr(batch, name) is not None]
    truth = f", with their {' and '.join(known)}" if known else ""
    print_line(f"{path}: {len(batch)} of {total} images of {arguments.split}{truth}")


def _check_split(dataset: Dataset, split: str) -> None:
    if split not in dataset.splits:
        known = ", ".join(dataset.splits)
        hint = did_you_mean(split, dataset.splits)
        raise CelstackError(
            f"--split: {dataset.name} has no split {split}{hint} (known: {known})"
        )

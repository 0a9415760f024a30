"""Check that the images that a run needs are available and valid, before it starts."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from celstack.data.batch_checks import batch_problem
from celstack.errors import CelstackError, RunFailedError
from celstack.text import describe_error, describe_os_error, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celstack.interfaces.dataset import Dataset


def require_images(dataset: Dataset, batch_sizes: Mapping[str, int]) -> None:
    """Find or generate the images of some splits, and check the first batch of each.

    Args:
        dataset: The dataset.
        batch_sizes: The splits that are needed, and how many images to check of each.

    Raises:
        CelstackError: A split is empty, the dataset fails to read its first batch, or that
            breaks a law of Dataset.
        RunFailedError: Images can be neither read nor generated.
    """
    for split, size in batch_sizes.items():
        first = f"{dataset.name}: the first images of '{split}'"
        try:
            count = _checked_count(dataset, split)
            indices = list(range(min(size, count)))
            problem = batch_problem(dataset, dataset.read(split, indices), len(indices))
        except CelstackError:
            raise
        except OSError as error:
            raise RunFailedError(
                f"{dataset.name}: no images: {describe_os_error(error)}"
            ) from error
        # Datasets of other packages may raise anything.
        except Exception as error:
            raise CelstackError(f"{first}: cannot be read: {describe_error(error)}") from error
        if problem:
            raise CelstackError(f"{first}: {problem}")


def _checked_count(dataset: Dataset, split: str) -> int:
    count = dataset.count(split)
    if not isinstance(count, Integral):
        raise CelstackError(
            f"{dataset.name}: count('{split}') returned {format_value(count)}; it must return "
            "an integer"
        )
    if count < 1:
        remedy = "check the options and the files of the dataset"
        if split != "train":
            remedy += ", or evaluate on another split, as with --set evaluation.split=train"
        raise CelstackError(f"{dataset.name}: the split '{split}' has no images; {remedy}")
    return int(count)

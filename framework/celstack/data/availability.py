"""Check that the images that a run needs are available, before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.errors import RunFailedError
from celstack.text import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from celstack.interfaces.dataset import Dataset


def require_images(dataset: Dataset, splits: Iterable[str]) -> None:
    """Find or generate the images of these splits.

    Raises:
        RunFailedError: They can be neither read nor generated.
    """
    try:
        for split in splits:
            dataset.count(split)
    except OSError as error:
        raise RunFailedError(
            f"{dataset.name}: no images: {describe_os_error(error)}"
        ) from error

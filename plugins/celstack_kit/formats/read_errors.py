"""Report damaged files by name, or skip and count them."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from celstack import CelstackError
from celstack.text import describe_error

Loaded = TypeVar("Loaded")
LOG = logging.getLogger("celstack")


@contextmanager
def blame_file(file: object) -> Iterator[None]:
    """Re-raise any exception of this block as a CelstackError that names the file."""
    try:
        yield
    except (CelstackError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise CelstackError(f"{file}: damaged or unreadable (no such file)") from error
    # Third-party readers raise too many kinds of exceptions to list.
    except Exception as error:
        raise CelstackError(
            f"{file}: damaged or unreadable ({describe_error(error)})"
        ) from error


def load_valid(
    dataset: str, names: Iterable[str], load: Callable[[str], Loaded], skip_broken: bool
) -> list[tuple[str, Loaded]]:
    """Load files by name, skipping those that raise CelstackError if ``skip_broken``.

    Args:
        dataset: Name of the dataset, for messages.
        names: The files.
        load: Loads one file, or raises CelstackError.
        skip_broken: Leave broken files out and log how many there are, instead of raising.

    Returns:
        The names and contents of the files that could be loaded.
    """
    loaded, broken = [], []
    for name in names:
        try:
            loaded.append((name, load(name)))
        except CelstackError as error:
            if not skip_broken:
                raise
            broken.append(str(error))
    if broken and not loaded:
        raise CelstackError(f"{dataset}: all {len(broken)} images are broken; {broken[0]}")
    if broken:
        total = len(broken) + len(loaded)
        LOG.warning("%s: skipped %d of %d; first %s", dataset, len(broken), total, broken[0])
    return loaded

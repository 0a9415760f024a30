"""Name the files that are damaged, or leave them out and count them."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from celstack import CelstackError
from celstack.text import describe_error

Loaded = TypeVar("Loaded")
LOG = logging.getLogger("celstack")


@contextmanager
def naming(file: object) -> Iterator[None]:
    """Tell whatever goes wrong inside as the fault of this file."""
    try:
        yield
    except (CelstackError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise CelstackError(f"{file}: damaged or unreadable (it is not there)") from error
    # Readers of other people's formats fail in too many ways to list.
    except Exception as error:
        raise CelstackError(
            f"{file}: damaged or unreadable ({describe_error(error)})"
        ) from error


def sound(
    dataset: str, names: Iterable[str], load: Callable[[str], Loaded], skip_broken: bool
) -> list[tuple[str, Loaded]]:
    """Load each, with its name; those that cannot be are skipped and counted, if so wished."""
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

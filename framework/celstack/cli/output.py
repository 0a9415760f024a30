"""Output of commands: results on standard output, errors and warnings on standard error.

Library code does not print. It warns with ``logging.getLogger("celstack").warning(...)``;
`printed_warnings` makes commands print them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from celstack.text import printable


def print_line(text: str = "") -> None:
    """Print a result to standard output."""
    print(text)  # noqa: T201


def print_error(text: str) -> None:
    """Print an error to standard error, as ``celstack: ...``."""
    # Text from files must not control the terminal.
    lines = "\n".join(map(printable, text.split("\n")))
    print(f"celstack: {lines}", file=sys.stderr)  # noqa: T201


def print_warning(text: str) -> None:
    """Print a warning to standard error, as ``celstack: warning: ...``."""
    print_error(f"warning: {text}")


def is_printing_rank() -> bool:
    """Return whether this process prints for all ranks of this machine."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings of the logger ``celstack`` inside the block, once for all local ranks."""
    import logging

    class WarningPrinter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if is_printing_rank():
                print_warning(record.getMessage())

    logger, handler = logging.getLogger("celstack"), WarningPrinter(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)

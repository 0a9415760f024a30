"""Output of commands: results on standard output, errors and warnings on standard error.

Library code does not print. It warns with ``logging.getLogger("celstack").warning(...)``;
`printed_warnings` makes commands print them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from celstack.errors import CelstackError
from celstack.text import describe_os_error, printable

_failures: list[OSError] = []
"""Why lines were not printed; `finish_output` raises it."""


def print_line(text: str = "") -> None:
    """Print a result to standard output; what it cannot show is escaped.

    If it cannot be written, as on a full disk, the command goes on: its work is not lost.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding))  # noqa: T201
    except BrokenPipeError:
        raise  # the reader has closed it, as `head` does, and waits for nothing more
    except OSError as error:
        _failures.append(error)


def finish_output() -> None:
    """Flush standard output; raise CelstackError if something could not be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        raise
    except OSError as error:
        _failures.append(error)
    if _failures:
        reason = describe_os_error(_failures[0])
        _failures.clear()
        discard_output()
        raise CelstackError(f"standard output: cannot write there: {reason}")


def discard_output() -> None:
    """Discard what is printed from now on, and what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(text: str) -> None:
    """Print an error to standard error, as ``celstack: ...``."""
    # Text from files must not control the terminal.
    lines = "\n".join(map(printable, text.split("\n")))
    # An error that cannot be printed still ends the command with its exit code.
    with suppress(OSError):
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

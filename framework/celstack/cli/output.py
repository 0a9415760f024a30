"""Output of commands: results on standard output, complaints on standard error."""

from __future__ import annotations

import sys

from celstack.text import printable


def say(text: str = "") -> None:
    """Print to standard output."""
    print(text)  # noqa: T201


def complain(text: str, code: int) -> int:
    """Print a message to standard error and return the exit code."""
    # What comes from a file must be read and not obeyed by a terminal.
    lines = "\n".join(map(printable, text.split("\n")))
    print(f"celstack: {lines}", file=sys.stderr)  # noqa: T201
    return code

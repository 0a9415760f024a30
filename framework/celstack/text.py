"""Format names, values, exceptions and durations for one-line messages.

Public: plugins use these functions in the messages of their ``CelstackError``s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_MESSAGE_CHARACTERS = 400
"""Longer messages of other libraries are cut; some quote whole files."""
MAX_VALUE_CHARACTERS = 60
"""Longer values are cut in messages."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name.

    Returns:
        ``"; did you mean 'position'?"``, to be appended to a message, or ``""``.
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message as one printable line."""
    text = printable(" ".join(str(error).split()))
    text = _truncate(text, MAX_MESSAGE_CHARACTERS)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def describe_os_error(error: OSError) -> str:
    """Return the reason of a failed system call, with the file if there is one."""
    reason = error.strerror or describe_error(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def printable(text: str) -> str:
    """Escape control characters, so that a terminal shows them instead of obeying them."""
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which file names and JSON may have."""
    return not any("\ud800" <= x <= "\udfff" for x in text)


def format_value(value: Any) -> str:
    """Format a value in one line of at most 60 characters, much as in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        # Dates are written in ISO format in TOML; nearly everything else as in Python.
        text = value.isoformat() if hasattr(value, "isoformat") else repr(value)
    except (ValueError, RecursionError):
        return "a value too large to show"
    text = " ".join(text.split())
    return _truncate(text, MAX_VALUE_CHARACTERS)


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _truncate(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[: max_characters - 3] + "..."

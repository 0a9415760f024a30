"""Text for people: names, values, exceptions and durations, in a few words of one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_MESSAGE_CHARACTERS = 400
"""Letters of somebody else's message that are told; some quote whole files."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say the nearest known name, or nothing if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def one_line(error: BaseException) -> str:
    """Tell an exception of somebody else's code in one line."""
    text = printable(" ".join(str(error).split()))
    text = (
        text
        if len(text) <= MAX_MESSAGE_CHARACTERS
        else text[: MAX_MESSAGE_CHARACTERS - 3] + "..."
    )
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def spell_os_error(error: OSError) -> str:
    """Say what the system refused, and for which file."""
    reason = error.strerror or one_line(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def printable(text: str) -> str:
    """Spell out what terminals would obey instead of showing it."""
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def shown(value: Any) -> str:
    """Show a value of the user's in a few words of one line, much as TOML would."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        # Dates have a spelling of their own in TOML; all else is spelt nearly as in Python.
        text = value.isoformat() if hasattr(value, "isoformat") else repr(value)
    except (ValueError, RecursionError):
        return "something too large to show"
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def spell_time(seconds: float) -> str:
    """Spell a time as people do."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"

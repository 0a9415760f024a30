"""What can go wrong by a user's hand, said in one line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

LONGEST = 400
"""Letters of somebody else's message that are told; some quote whole files."""


class CelstackError(Exception):
    """A mistake of the user's: printed without a traceback, exit code 2."""

    alone: bool = False
    """Whether, of several processes of a run, only this one knows, and has to tell."""


class RunFailedError(CelstackError):
    """A run that was set up well and failed all the same: exit code 1."""


class MishapError(RunFailedError):
    """A run that something outside of it stopped: when that is mended, it may go on."""


class ProcessLostError(RunFailedError):
    """Another process of the run does not answer; one of those that are left tells."""

    def __init__(self, text: str, alone: bool = True) -> None:
        super().__init__(text)
        self.alone = alone


class Problem(NamedTuple):
    """One mistake and its place in the recipe, such as ``transforms.layer[1].use``."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class RecipeError(CelstackError):
    """All mistakes of one recipe at once."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = list(problems)
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = (f"  {problem}" for problem in self.problems)
        return "\n".join([f"{self.source}: {len(self.problems)} problems", *lines])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say the nearest known name, or nothing if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def one_line(error: BaseException) -> str:
    """Tell an exception of somebody else's code in one line."""
    text = printable(" ".join(str(error).split()))
    text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


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


def spelt(key: str) -> str:
    """Spell a key for a place in a recipe: in quotes unless it is a bare word of TOML."""
    bare = key.replace("-", "_").replace("_", "a")
    return key if bare.isascii() and bare.isalnum() else shown(key)

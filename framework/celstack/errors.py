"""What can go wrong by a user's hand, said in one line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CelstackError(Exception):
    """A mistake of the user's: printed without a traceback, exit code 2."""

    alone: bool = False
    """Whether, of several processes of a run, only this one knows, and has to tell."""


class RunFailedError(CelstackError):
    """A run that was set up well and failed all the same: exit code 1."""


class RecoverableError(RunFailedError):
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

"""Exceptions whose messages are written for users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CelstackError(Exception):
    """A mistake of the user: printed without a traceback, exit code 2."""

    rank_local: bool = False
    """Whether only this rank of a distributed run knows the error, and so has to print it."""


class StopTraining(Exception):  # noqa: N818 - like StopIteration, it is not an error
    """Raised by an observer to end training after the current step, for a reason.

    The model is then evaluated, and the run is finished as after its last step::

        raise StopTraining("the loss is below 0.001")
    """


class RunFailedError(CelstackError):
    """A valid command that failed while it ran: exit code 1."""


class RecoverableError(RunFailedError):
    """A run that something outside of it stopped: when that is mended, it may go on."""


class ProcessLostError(RunFailedError):
    """Another rank of a distributed run does not answer."""

    def __init__(self, text: str, rank_local: bool = True) -> None:
        super().__init__(text)
        self.rank_local = rank_local


class Problem(NamedTuple):
    """One mistake in a recipe and its key path, such as ``transforms.layer[1].use``."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class RecipeError(CelstackError):
    """All mistakes of one recipe."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = list(problems)
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = (f"  {problem}" for problem in self.problems)
        return "\n".join([f"{self.source}: {len(self.problems)} problems", *lines])

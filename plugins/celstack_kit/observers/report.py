"""Report: an HTML page about a run, refreshed during training and written at its end."""

import time
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from celstack import INTERRUPTED_TWICE, Assembly, Decomposer, Observer, RunDirectory, hookimpl
from celstack.report import RunStatus, make_page

MIN_TRAINING_RATIO = 20
"""Between two pages, training gets at least so many times the time that a page took."""


class Report(Observer):
    """Writes report.html into the run folder every ``every`` seconds, and at the end."""

    def __init__(self, every: Annotated[int, Ge(1)] = 60) -> None:
        self.every = every

    @hookimpl
    def celstack_run_started(
        self, assembly: Assembly, decomposer: Decomposer, folder: Path | None, steps: int
    ) -> None:
        """Store what pages show; without a run folder nothing is written."""
        self.assembly, self.decomposer = assembly, decomposer
        self.folder, self.steps = folder, steps
        self.due = time.monotonic() + self.every

    @hookimpl
    def celstack_step_finished(self, step: int) -> None:
        """Write a page if one is due."""
        if time.monotonic() < self.due:
            return
        began = time.monotonic()
        text = f"Training: step {step:,} of {self.steps:,}."
        refresh = f"This page refreshes every {_duration(self.every)}."
        self._write(RunStatus(f"{text} {refresh}", self.every))
        ended = time.monotonic()
        self.due = ended + max(self.every, MIN_TRAINING_RATIO * (ended - began))

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Write the final page, with scores."""
        self._write(None)

    @hookimpl
    def celstack_run_stopped(self, step: int, reason: str) -> None:
        """Write a page of the unfinished run, except after a second Ctrl-C."""
        if reason == INTERRUPTED_TWICE:
            return
        self._write(RunStatus(f"Stopped after step {step:,}: {reason}."))

    def _write(self, state: RunStatus | None) -> None:
        if self.folder is not None:
            page = make_page(self.folder, self.assembly, self.decomposer, state)
            RunDirectory(self.folder).save_page(page.text)


def _duration(seconds: int) -> str:
    if seconds == 60:
        return "minute"
    return "second" if seconds == 1 else f"{seconds} seconds"


@hookimpl
def celstack_observers() -> dict[str, type[Report]]:
    """Register ``observers = ["report"]``."""
    return {"report": Report}

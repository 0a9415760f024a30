"""Report: a page to look at, while a run goes on and when it ends."""

import time
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from celstack import Assembly, Decomposer, Observer, RunDirectory, hookimpl
from celstack.report.run_page import RunStatus, make_page
from celstack.signals import AT_ONCE

SHARE = 20
"""Making pages takes no more than one part in so many of a run's time."""


class Report(Observer):
    """Writes report.html into the run's folder every so many seconds, and at the end."""

    def __init__(self, every: Annotated[int, Ge(1)] = 60) -> None:
        self.every = every

    @hookimpl
    def celstack_run_started(
        self, assembly: Assembly, decomposer: Decomposer, folder: Path | None, steps: int
    ) -> None:
        """Remember what pages are about; a run without a folder has none."""
        self.assembly, self.decomposer = assembly, decomposer
        self.folder, self.steps = folder, steps
        self.due = time.monotonic() + self.every

    @hookimpl
    def celstack_step_finished(self, step: int) -> None:
        """Write a page if it is time."""
        if time.monotonic() < self.due:
            return
        began = time.monotonic()
        text = f"The run goes on: {step:,} of {self.steps:,} steps are done."
        self._write(RunStatus(f"{text} This page looks again by itself.", self.every))
        ended = time.monotonic()
        self.due = ended + max(self.every, SHARE * (ended - began))

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Write the last page, with scores."""
        self._write(None)

    @hookimpl
    def celstack_run_stopped(self, step: int, reason: str) -> None:
        """Write a page about what was learned until then, unless nobody waits for it."""
        if reason == AT_ONCE:
            return
        self._write(RunStatus(f"The run was stopped after step {step:,}: {reason}."))

    def _write(self, state: RunStatus | None) -> None:
        if self.folder is not None:
            page = make_page(self.folder, self.assembly, self.decomposer, state)
            RunDirectory(self.folder).save_page(page.text)


@hookimpl
def celstack_observers() -> dict[str, type[Report]]:
    """Let recipes say ``observers = ["report"]``."""
    return {"report": Report}

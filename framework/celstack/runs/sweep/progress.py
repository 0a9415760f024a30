"""Progress of a sweep: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.progress import MofNCompleteColumn, Progress, TaskID

from celstack.progress import StatusConsole
from celstack.runs.finished import final_loss
from celstack.text import format_duration

LOG_TAIL_BYTES = 4096
"""The end of a log in which its last step is searched."""
REFRESH_SECONDS = 0.5


class RunBar(NamedTuple):
    """The progress bar of a run."""

    folder: Path
    bar: TaskID
    start: float


class SweepProgress:
    """Shows on standard error which runs start, how far they are, and how they end."""

    def __init__(self, titles: Sequence[str], steps: Sequence[int | None], quiet: bool) -> None:
        self.titles, self.steps = titles, steps
        self.console = StatusConsole(quiet=quiet)
        self.progress = self.console.new_bar(
            Progress, MofNCompleteColumn(), disable=self.console.plain
        )
        self.total = self.progress.add_task("runs", total=len(titles))
        self.active: dict[int, RunBar] = {}
        self.next_refresh = 0.0

    def __enter__(self) -> SweepProgress:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def run_started(self, number: int, folder: Path, text: str = "") -> None:
        """Show that a run was started or resumed, or ``text`` instead."""
        bar = self.progress.add_task(f"  {self.titles[number]}", total=self.steps[number])
        self.active[number] = RunBar(folder, bar, time.monotonic())
        resumed = (folder / "checkpoint.pt").is_file()
        self._line(number, text or ("resumed" if resumed else "started"))

    def run_ended(self, number: int, folder: Path, reason: str) -> None:
        """Show that a run is finished or, with a reason, that it failed."""
        _, bar, start = self.active.pop(number)
        self.progress.remove_task(bar)
        self.progress.advance(self.total)
        took = format_duration(time.monotonic() - start)
        loss = final_loss(folder / "log.jsonl")
        finished = f"finished after {took}" + ("" if loss is None else f", loss {loss:.3g}")
        self._line(number, f"failed: {reason}" if reason else finished)

    def refresh(self) -> None:
        """Update the bars from the logs of runs, at most every ``REFRESH_SECONDS``."""
        if self.console.plain or time.monotonic() < self.next_refresh:
            return
        self.next_refresh = time.monotonic() + REFRESH_SECONDS
        for folder, bar, _ in self.active.values():
            self.progress.update(bar, completed=last_step(folder / "log.jsonl"))

    def _line(self, number: int, text: str) -> None:
        line = f"run {number + 1} of {len(self.titles)}: {self.titles[number]}: {text}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


def last_step(log: Path) -> int:
    """Return the last step in a log; 0 if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(-min(LOG_TAIL_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
            lines = file.read().splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, TypeError, LookupError):  # incomplete line
            continue
    return 0

"""What a sweep tells while it goes on: bars in a terminal, plain lines elsewhere."""

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

TAIL = 4096
"""As many bytes at the end of a log hold its last step."""
LOOK_EVERY = 0.5


class Going(NamedTuple):
    """A run that goes on, as it is shown."""

    folder: Path
    bar: TaskID
    began: float


class Listener:
    """Says which runs begin, how far they are, and how they end, on standard error."""

    def __init__(self, titles: Sequence[str], steps: Sequence[int | None], quiet: bool) -> None:
        self.titles, self.steps = titles, steps
        self.console = StatusConsole(quiet=quiet)
        self.progress = self.console.new_bar(
            Progress, MofNCompleteColumn(), disable=self.console.plain
        )
        self.whole = self.progress.add_task("runs", total=len(titles))
        self.going: dict[int, Going] = {}
        self.due = 0.0

    def __enter__(self) -> Listener:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def begins(self, number: int, folder: Path, how: str = "") -> None:
        """A run begins, or goes on."""
        bar = self.progress.add_task(f"  {self.titles[number]}", total=self.steps[number])
        self.going[number] = Going(folder, bar, time.monotonic())
        again = (folder / "checkpoint.pt").is_file()
        self._line(number, how or ("goes on" if again else "begins"))

    def ends(self, number: int, folder: Path, reason: str) -> None:
        """A run is finished, or failed for this reason."""
        _, bar, began = self.going.pop(number)
        self.progress.remove_task(bar)
        self.progress.advance(self.whole)
        took = format_duration(time.monotonic() - began)
        loss = final_loss(folder / "log.jsonl")
        well = f"is finished after {took}" + ("" if loss is None else f", loss {loss:.3g}")
        self._line(number, f"failed: {reason}" if reason else well)

    def looks(self) -> None:
        """Time has passed: see how far runs are, where that is shown."""
        if self.console.plain or time.monotonic() < self.due:
            return
        self.due = time.monotonic() + LOOK_EVERY
        for folder, bar, _ in self.going.values():
            self.progress.update(bar, completed=last_step(folder / "log.jsonl"))

    def _line(self, number: int, text: str) -> None:
        run = f"run {number + 1} of {len(self.titles)}: {self.titles[number]}"
        self.console.print_plain(f"{run}: {text}")


def last_step(log: Path) -> int:
    """Return the last step that a log tells of; 0 if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(-min(TAIL, os.fstat(file.fileno()).st_size), os.SEEK_END)
            lines = file.read().splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, TypeError, LookupError):  # half a line
            continue
    return 0

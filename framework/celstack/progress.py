"""Progress on standard error: a bar in a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

QUIET_SECONDS = 2.0
"""Work that takes less shows no progress."""
SECONDS_BETWEEN_LINES = 30.0
PLAIN_LINES_PER_FILE = 10
MIN_TRANSFER_BYTES = 10**7
"""Smaller downloads get no plain line ..."""
MIN_LOCAL_BYTES = 10**9
"""... nor do smaller files that are only read or written on this machine."""
BYTES_PER_LINE = 10**8
"""Bytes between plain lines where the total is unknown."""


class WorkProgress:
    """Progress of work that takes longer than two seconds, on standard error.

    ``with WorkProgress("sprites: drawing", total) as progress`` and ``progress.advance(count)``
    after each part of it. ``total`` may be an upper bound.
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.next = time.monotonic() + QUIET_SECONDS

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, count: int) -> None:
        """Tell that so much more is done."""
        self.done += count
        if time.monotonic() < self.next:
            return
        if self.console.is_interactive:
            self._show()
        else:
            text = f"{self.title}: {self.done} of {self.total}"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
            self.next = time.monotonic() + SECONDS_BETWEEN_LINES

    def _show(self) -> None:
        if self.bar is None:
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task(self.title, total=self.total)
            self.bar.start()
        self.bar.update(self.task, completed=self.done)


class TransferProgress:
    """Progress of downloads on standard error; finished files go to ``announce``."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self.console = Console(stderr=True)
        # Not is_terminal: some terminals cannot move their cursor.
        self.plain = not self.console.is_interactive
        self._bar: Progress | None = None

    def __enter__(self) -> TransferProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def finish(self, text: str) -> None:
        """Remove the bar and announce a result."""
        self._stop()
        self.announce(text)

    def start(self, file: str) -> Callable[[str, int, int | None], None]:
        """Begin with a file; return what is to be told about it."""
        self._stop()
        told: dict[str, int] = {}

        def report(doing: str, done: int, total: int | None) -> None:
            title = f"{file}: {doing}" if doing else file
            if doing.endswith("trying again"):
                self._line(title)
            elif not self.plain:
                bar = self._started()
                bar.update(bar.task_ids[0], description=title, completed=done, total=total)
            elif total is None or total > (MIN_LOCAL_BYTES if doing else MIN_TRANSFER_BYTES):
                reached = (
                    done * PLAIN_LINES_PER_FILE // total if total else done // BYTES_PER_LINE
                )
                if reached > told.setdefault(doing, 0):
                    told[doing] = reached
                    self._line(f"{title}: {done}{f' of {total}' if total else ''} bytes")

        return report

    def _started(self) -> Progress:
        """Return the bar; it appears with the first bytes."""
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bar.add_task("", total=None)
            self._bar.start()
        return self._bar

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

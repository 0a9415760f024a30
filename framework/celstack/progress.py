"""Show how far a transfer has come: a bar in the terminal, plain lines elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import (
    Progress as Bar,
)

from celstack.cli import say
from celstack.data.download.checksums import Report

LINES = 10
"""How many plain lines a file gets."""
SMALL = 10**7
"""Bytes of which no plain line is worth while, when they are transferred ..."""
SMALL_HERE = 10**9
"""... and when they are only read or written on this machine."""
STRIDE = 10**8
"""Bytes between plain lines where nobody knows how many are to come."""


class Progress:
    """Shows on standard error what goes on; what is done is said on standard output."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        # Not is_terminal: some terminals cannot move their cursor.
        self.plain = not self.console.is_interactive
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def say(self, text: str) -> None:
        """Say a line; the bar is gone by then."""
        self._stop()
        say(text)

    def start(self, file: str) -> Report:
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
            elif total is None or total > (SMALL_HERE if doing else SMALL):
                reached = done * LINES // total if total else done // STRIDE
                if reached > told.setdefault(doing, 0):
                    told[doing] = reached
                    self._line(f"{title}: {done}{f' of {total}' if total else ''} bytes")

        return report

    def _started(self) -> Bar:
        """Return the bar; it appears with the first bytes."""
        if self._bar is None:
            self._bar = Bar(
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

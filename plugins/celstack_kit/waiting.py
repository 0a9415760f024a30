"""A line about work that takes long: a bar in a terminal, few plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

PATIENCE = 2.0
"""Seconds of work that need no word."""
PAUSE = 30.0
"""Seconds between two plain lines."""


class Waiting:
    """Says how far work has come, once it has taken more than two seconds.

    ``with Waiting("sprites: drawing", total) as waiting`` and ``waiting.advance(count)``
    after each part of it. Where ``total`` was guessed too high, the work just ends earlier.
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.next = time.monotonic() + PATIENCE

    def __enter__(self) -> "Waiting":
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
            self.next = time.monotonic() + PAUSE

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

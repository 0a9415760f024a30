"""Progress on standard error: bars in a terminal, a few plain lines elsewhere.

Public: plugins use `WorkProgress` for work that may take long, and observers that print use
`StatusConsole`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
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

BarClass = TypeVar("BarClass", bound=Progress)


class StatusConsole(Console):
    """Standard error, for progress: bars where they can be redrawn, plain lines elsewhere.

    Args:
        options: Passed on to ``rich.console.Console``, such as ``quiet=True``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(stderr=True, **options)

    @property
    def plain(self) -> bool:
        """Whether bars cannot be redrawn here, so that plain lines have to do."""
        # Not is_terminal: some terminals cannot move their cursor.
        return not self.is_interactive

    def print_plain(self, text: str) -> None:
        """Print a line as it is: without markup, colors and line breaks."""
        self.print(text, markup=False, highlight=False, soft_wrap=True)

    def new_bar(
        self, bar_class: type[BarClass], *columns: ProgressColumn, **options: Any
    ) -> BarClass:
        """Create a bar with a title, followed by these columns; it is not started.

        Args:
            bar_class: ``rich.progress.Progress`` or a subclass.
            columns: What is shown after the title and the bar.
            options: Passed on to ``bar_class``.
        """
        title = TextColumn("{task.description}", markup=False)
        return bar_class(title, BarColumn(), *columns, console=self, **options)


class WorkProgress:
    """Progress of work on standard error, if it takes longer than two seconds.

    Args:
        title: What is done, such as ``"sprites: drawing"``.
        total: The number of parts of the work; an upper bound will do.

    Example:
        >>> with WorkProgress("sprites: drawing", len(sprites)) as progress:
        ...     for sprite in sprites:
        ...         draw(sprite)
        ...         progress.advance(1)
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.console = StatusConsole()
        self.bar: Progress | None = None
        self.next = time.monotonic() + QUIET_SECONDS

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, count: int) -> None:
        """Add to the number of parts that are done."""
        self.done += count
        if time.monotonic() < self.next:
            return
        if self.console.plain:
            self.console.print_plain(f"{self.title}: {self.done} of {self.total}")
            self.next = time.monotonic() + SECONDS_BETWEEN_LINES
        else:
            self._update_bar()

    def _update_bar(self) -> None:
        if self.bar is None:
            columns = (MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = self.console.new_bar(Progress, *columns, transient=True)
            self.task = self.bar.add_task(self.title, total=self.total)
            self.bar.start()
        self.bar.update(self.task, completed=self.done)


class TransferProgress:
    """Progress of downloads on standard error; results are passed to ``announce``."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self.console = StatusConsole()
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
        """Start with a file.

        Returns:
            A function to call with the current action ("" for the transfer itself), the
            number of bytes done, and the total or None.
        """
        self._stop()
        reached: dict[str, int] = {}

        def report(action: str, done: int, total: int | None) -> None:
            title = f"{file}: {action}" if action else file
            if action.endswith("retrying"):
                self.console.print_plain(title)
            elif not self.console.plain:
                bar = self._started_bar()
                bar.update(bar.task_ids[0], description=title, completed=done, total=total)
            elif total is None or total > (MIN_LOCAL_BYTES if action else MIN_TRANSFER_BYTES):
                lines = (
                    done * PLAIN_LINES_PER_FILE // total if total else done // BYTES_PER_LINE
                )
                if lines > reached.setdefault(action, 0):
                    reached[action] = lines
                    of_total = f" of {total}" if total else ""
                    self.console.print_plain(f"{title}: {done}{of_total} bytes")

        return report

    def _started_bar(self) -> Progress:
        """Return the bar; it appears with the first bytes."""
        if self._bar is None:
            columns = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            self._bar = self.console.new_bar(Progress, *columns, transient=True)
            self._bar.add_task("", total=None)
            self._bar.start()
        return self._bar

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

"""Show how many of many images are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY = 10.0
"""Seconds between two lines, where no bar can move."""


@contextmanager
def counting(doing: str, done: str, images: int) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many images are done: a bar, or a line now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    plain = not console.is_interactive
    count, told = 0, time.monotonic()

    def watch(more: int) -> None:
        nonlocal count, told
        count += more
        bar.update(task, completed=count)
        if plain and time.monotonic() - told > LINE_EVERY:
            told = time.monotonic()
            console.print(f"{done} {count} of {images} images", highlight=False)

    with Progress(console=console, transient=True, disable=plain) as bar:
        task = bar.add_task(doing, total=images)
        yield watch

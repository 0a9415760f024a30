"""Interruptions wait until what must not be halved is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED_TWICE = "interrupted twice"
"""The reason of an interruption after which nothing that takes long should be started."""
Handler = Callable[[int, FrameType | None], object]


class Terminated(KeyboardInterrupt):
    """The process was asked to end, as schedulers and shutdowns do it: by SIGTERM."""


@contextmanager
def heeding_termination() -> Iterator[None]:
    """Let SIGTERM stop what goes on in the block as Ctrl-C does."""
    before = signal.getsignal(signal.SIGTERM)
    # Who has a way of his own with it, or ignores it, keeps to that.
    if not _main_thread() or before != signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block is done; a second one waits no longer."""
    # Other threads are never interrupted, and who ignores Ctrl-C goes on doing so.
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before: dict[int, Handler] = {n: how for n, how in known.items() if callable(how)}
    if not _main_thread():
        before.clear()
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))
        if len(waiting) > 1 and before[number] is signal.default_int_handler:
            raise KeyboardInterrupt(INTERRUPTED_TWICE)
        if len(waiting) > 1:
            before[number](number, frame)

    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if waiting:
        number, frame = waiting[0]
        before[number](number, frame)


def _main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

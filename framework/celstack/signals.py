"""Handle SIGINT and SIGTERM: defer them while something must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED_TWICE = "interrupted twice"
"""The reason of ``celstack_run_stopped`` after a second Ctrl-C: do nothing that takes long."""
Handler = Callable[[int, FrameType | None], object]


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM, as job schedulers and shutdowns send it."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise Terminated, a KeyboardInterrupt, when SIGTERM arrives during the block."""
    before = signal.getsignal(signal.SIGTERM)
    # A handler that somebody else has set, or that ignores the signal, stays in place.
    if not _in_main_thread() or before != signal.SIG_DFL:
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
def defer_interrupts() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block; a second signal is handled at once."""
    # Signals reach the main thread only; signals that are ignored stay ignored.
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before: dict[int, Handler] = {n: how for n, how in known.items() if callable(how)}
    if not _in_main_thread():
        before.clear()
    deferred: list[tuple[int, FrameType | None]] = []

    def defer(number: int, frame: FrameType | None) -> None:
        deferred.append((number, frame))
        if len(deferred) > 1 and before[number] is signal.default_int_handler:
            raise KeyboardInterrupt(INTERRUPTED_TWICE)
        if len(deferred) > 1:
            before[number](number, frame)

    for number in before:
        signal.signal(number, defer)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if deferred:
        number, frame = deferred[0]
        before[number](number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

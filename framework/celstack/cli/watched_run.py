"""Run one recipe of a sweep in a process that stops when the sweep's process does."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from celstack.cli import run_recipe

STOP_TIMEOUT_SECONDS = 60.0
"""How long the process of an earlier, killed sweep may take to stop."""


def main() -> None:
    """Run `run-recipe` with this process's arguments; the last is the run folder."""
    # Shells start background jobs with SIGINT ignored, and child processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_interrupt_on_eof, daemon=True).start()
    # If another process still holds the lock after this, the run itself refuses to start.
    with (
        suppress(Timeout),
        FileLock(Path(sys.argv[-1]) / ".lock", timeout=STOP_TIMEOUT_SECONDS),
    ):
        pass
    run_recipe()


def _interrupt_on_eof() -> None:
    """Interrupt the main thread when the sweep closes our standard input, or dies."""
    # Not sys.stdin: a thread that holds its lock would block the interpreter's exit.
    os.read(0, 1)
    _thread.interrupt_main()


if __name__ == "__main__":
    main()

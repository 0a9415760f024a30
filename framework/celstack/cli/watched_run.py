"""One run of a sweep, in a process that stops when the sweep does, whatever ends that."""

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

PATIENCE = 60.0
"""How many seconds a process of a sweep that was killed may take to stop."""


def main() -> None:
    """Run `run-recipe` with these arguments, of which the last is the folder of a run."""
    # Shells start what runs in the background deaf to Ctrl-C, and so is what that starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_watch, daemon=True).start()
    # If there is still another process after this, the run itself refuses to go on.
    with suppress(Timeout), FileLock(Path(sys.argv[-1]) / ".lock", timeout=PATIENCE):
        pass
    run_recipe()


def _watch() -> None:
    """Do as Ctrl-C does when the sweep closes the other end of our input, or is no more."""
    # Not sys.stdin, whose lock nobody may hold when the interpreter ends.
    os.read(0, 1)
    _thread.interrupt_main()


if __name__ == "__main__":
    main()

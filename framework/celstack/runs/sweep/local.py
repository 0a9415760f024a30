"""The runs of a sweep as processes of this machine, some of them at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from celstack.runs.sweep.failures import why
from celstack.runs.sweep.progress import Listener

POLL = 0.1
"""Seconds between two looks at the processes."""
GRACE = 120.0
"""How many seconds runs may take to save what they learned, when a sweep is stopped."""
THREADS = "OMP_NUM_THREADS"


class Active(NamedTuple):
    """A run that goes on."""

    number: int
    folder: Path
    process: subprocess.Popen[bytes]
    complaints: IO[bytes]


def run_here(
    folders: Sequence[Callable[[], Path]], listener: Listener, jobs: int, device: str
) -> dict[int, str]:
    """Run in these folders, so many ``jobs`` at a time; return why some failed, by number.

    Folders are asked for when their turn comes. Ctrl-C lets runs save what they learned.
    """
    waiting = list(enumerate(folders))
    environment = {**os.environ, THREADS: str(share_threads(min(jobs, len(folders))))}
    active: list[Active] = []
    failures: dict[int, str] = {}
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                number, folder = waiting.pop(0)
                active.append(_start(number, folder(), device, environment))
                listener.begins(number, active[-1].folder)
            for one in [one for one in active if one.process.poll() is not None]:
                active.remove(one)
                reason = _end(one)
                if reason:
                    failures[one.number] = reason
                listener.ends(one.number, one.folder, reason)
            listener.looks()
            time.sleep(POLL)
    finally:
        _stop(active)
    return failures


def share_threads(jobs: int) -> int:
    """Return how many threads each of some runs gets: all cores, in equal parts.

    Where the user has said how many a process may have, that is what each gets.
    """
    said = os.environ.get(THREADS, "")
    if said.isdecimal() and int(said):
        return int(said)
    return max(1, count_cores() // max(1, jobs))


def count_cores() -> int:
    """Count the cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(number: int, folder: Path, device: str, environment: dict[str, str]) -> Active:
    complaints = TemporaryFile()  # noqa: SIM115
    options = ["--quiet", "--device", device, "--resume", str(folder)]
    process = subprocess.Popen(  # noqa: S603
        # -P: a torch.py that happens to lie here is nobody's torch.
        [sys.executable, "-P", "-m", "celstack.cli.watched_run", *options],
        # As long as the other end of this is open, the sweep goes on.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        env=environment,
        # Ctrl-C in a terminal is for the sweep alone, which passes it on, once.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    return Active(number, folder, process, complaints)


def _end(one: Active) -> str:
    """Return why a run failed; nothing if it did not."""
    assert one.process.stdin is not None
    one.process.stdin.close()
    with one.complaints:
        one.complaints.seek(0)
        said = one.complaints.read().decode(errors="replace")
    return why(one.folder, said, one.process.returncode)


def _stop(active: Sequence[Active]) -> None:
    """Ask what still runs to save and stop, then wait; interrupted again, wait no longer."""
    try:
        for one in active:
            assert one.process.stdin is not None
            one.process.stdin.close()
        end = time.monotonic() + GRACE
        for one in active:
            one.process.wait(max(0.0, end - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        for one in active:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            one.complaints.close()

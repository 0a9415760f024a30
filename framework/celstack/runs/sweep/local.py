"""Local execution of a sweep: its runs as processes of this machine, some at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from celstack.runs.sweep.failures import failure_reason
from celstack.runs.sweep.progress import SweepProgress

POLL_SECONDS = 0.1
SHUTDOWN_SECONDS = 120.0
"""How long runs may take to save a checkpoint when the sweep is stopped."""
THREADS = "OMP_NUM_THREADS"


class RunProcess(NamedTuple):
    """The process of a run."""

    number: int
    folder: Path
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]


def run_locally(
    folders: Sequence[Callable[[], Path]], progress: SweepProgress, jobs: int, device: str
) -> dict[int, str]:
    """Execute runs in processes of their own. On Ctrl-C, they save a checkpoint and stop.

    Args:
        folders: For each run, a function that makes its folder; called when it starts.
        progress: Notified when runs start and end.
        jobs: How many runs are executed at a time.
        device: The device of all runs.

    Returns:
        The reasons of failed runs, by their index.
    """
    waiting = list(enumerate(folders))
    environment = {**os.environ, THREADS: str(threads_per_run(min(jobs, len(folders))))}
    active: list[RunProcess] = []
    failures: dict[int, str] = {}
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                number, folder = waiting.pop(0)
                active.append(_start(number, folder(), device, environment))
                progress.run_started(number, active[-1].folder)
            for one in [one for one in active if one.process.poll() is not None]:
                active.remove(one)
                reason = _end(one)
                if reason:
                    failures[one.number] = reason
                progress.run_ended(one.number, one.folder, reason)
            progress.refresh()
            time.sleep(POLL_SECONDS)
    finally:
        _stop(active)
    return failures


def threads_per_run(jobs: int) -> int:
    """Return how many threads each of ``jobs`` runs gets: all cores, in equal parts.

    If the user has set OMP_NUM_THREADS, each gets that many.
    """
    given = os.environ.get(THREADS, "")
    if given.isdecimal() and int(given):
        return int(given)
    return max(1, count_cores() // max(1, jobs))


def count_cores() -> int:
    """Count the cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(number: int, folder: Path, device: str, environment: dict[str, str]) -> RunProcess:
    stderr = TemporaryFile()  # noqa: SIM115
    options = ["--quiet", "--device", device, "--resume", str(folder)]
    process = subprocess.Popen(  # noqa: S603
        # -P: do not import modules, such as a torch.py, from the working directory.
        [sys.executable, "-P", "-m", "celstack.cli.watched_run", *options],
        # Closing this pipe asks the run to save a checkpoint and stop.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=environment,
        # Ctrl-C in a terminal must reach only the sweep, which stops its runs once.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    return RunProcess(number, folder, process, stderr)


def _end(one: RunProcess) -> str:
    """Clean up an ended process; return why its run failed, empty if it did not."""
    assert one.process.stdin is not None
    one.process.stdin.close()
    with one.stderr:
        one.stderr.seek(0)
        text = one.stderr.read().decode(errors="replace")
    return failure_reason(one.folder, text, one.process.returncode)


def _stop(active: Sequence[RunProcess]) -> None:
    """Ask processes to save and stop, and wait; kill them if interrupted again or too late."""
    try:
        for one in active:
            assert one.process.stdin is not None
            one.process.stdin.close()
        end = time.monotonic() + SHUTDOWN_SECONDS
        for one in active:
            one.process.wait(max(0.0, end - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        for one in active:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
            one.stderr.close()

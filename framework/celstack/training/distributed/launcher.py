"""Start the processes of a run on this machine, and make sure that all of them end.

A run may be started by torchrun as well. It is not used here, nor is Fabric's launcher: when
a rank fails, both end the others before these can save a checkpoint and name the lost rank.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

DEFAULT_TIMEOUT_SECONDS = 120.0
"""How long a rank waits in a collective operation for one that does not answer."""
LAUNCHER_PID = "CELSTACK_PARENT"
"""The environment variable that holds the launcher's process ID."""
GRACE_SECONDS = 10.0
"""How long the other processes may take to end after one has failed."""
CHILD_CODE = """\
import sys
from celstack.cli import run_recipe
sys.argv[0] = "run-recipe"
run_recipe()
"""


def is_distributed() -> bool:
    """Return whether this process is one of several, by the variables that torchrun sets."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def is_main_process() -> bool:
    """Return whether this is rank 0, or the only process: it alone writes and prints."""
    return not is_distributed() or os.environ["RANK"] == "0"


def launch(
    arguments: Sequence[str], processes: int, timeout: float = DEFAULT_TIMEOUT_SECONDS
) -> int:
    """Run `run-recipe` in several processes that share the cores; return the exit code.

    SIGINT and SIGTERM are forwarded. When a process fails, the others notice within
    ``timeout`` seconds; those that have not ended ``GRACE_SECONDS`` later are killed.
    """
    environment = child_environment(processes)
    # In sessions of their own: they get Ctrl-C once, from here, and not from the terminal, too.
    children = [
        subprocess.Popen(  # noqa: S603 - this same command again
            [sys.executable, "-c", CHILD_CODE, *arguments],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            start_new_session=True,
        )
        for rank in range(processes)
    ]

    def forward(number: int, _: FrameType | None) -> None:
        # Windows has no sessions: there Ctrl-C has reached the children already.
        for child in children if sys.platform != "win32" else ():
            child.send_signal(number)

    forwarded = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, forward) for number in forwarded}
    try:
        return _wait(children, timeout)
    finally:
        for child in children:
            child.kill()
        for number, handler in before.items():
            signal.signal(number, handler)


def child_environment(processes: int) -> Mapping[str, str]:
    """Return the environment variables that torchrun would set, except for the ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = max(1, (os.cpu_count() or 1) // processes)
    return {
        "OMP_NUM_THREADS": str(threads),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        LAUNCHER_PID: str(os.getpid()),
    }


def _wait(children: Sequence[subprocess.Popen[bytes]], timeout: float) -> int:
    """Wait until all children have ended; kill the rest some time after one has failed."""
    end = math.inf
    # All are polled every time: one that is stopped must not hide the exit code of another.
    while None in [child.poll() for child in children]:
        codes = [child.returncode for child in children if child.returncode]
        if codes:
            # A child that exits has printed why; one that was killed (a negative code) is only
            # reported by the others, once their collective operation times out.
            seconds = GRACE_SECONDS if max(codes) > 0 else timeout + GRACE_SECONDS
            end = min(end, time.monotonic() + seconds)
        if time.monotonic() > end:
            for child in children:
                child.kill()
        time.sleep(0.05)
    codes = [child.returncode for child in children]
    # A child killed by a signal has a negative code; the exit codes of the others come first.
    return next((code for code in codes if code > 0), 1 if any(codes) else 0)

"""Launch: start the processes of a run on this machine, and see that all of them end."""

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

TIMEOUT = 120.0
"""Seconds that processes wait for one that does not answer."""
PARENT = "CELSTACK_PARENT"
"""Names, to a process that is launched here, who launched it."""
GRACE = 10.0
"""Seconds that processes get to end by themselves when one of them has told what failed."""
BEGIN = """\
import sys
from celstack.cli import run_recipe
sys.argv[0] = "run-recipe"
run_recipe()
"""


def launched() -> bool:
    """Tell whether this process is one of several, by the variables that torchrun sets."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def first() -> bool:
    """Tell whether this process is the one that writes, prints and is watched."""
    return not launched() or os.environ["RANK"] == "0"


def launch(arguments: Sequence[str], count: int, timeout: float = TIMEOUT) -> int:
    """Run `run-recipe` in so many processes that share the cores; return the exit code.

    Ctrl-C and SIGTERM are passed on. When a process fails, the others notice, in the time of
    ``timeout`` at most; what does not end all the same is killed.
    """
    environment = variables(count)
    # A session of their own: Ctrl-C reaches them once, from here.
    children = [
        subprocess.Popen(  # noqa: S603 - this very command, once more
            [sys.executable, "-c", BEGIN, *arguments],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            start_new_session=True,
        )
        for rank in range(count)
    ]

    def pass_on(number: int, _: FrameType | None) -> None:
        # On Windows there are no sessions, and Ctrl-C has reached them.
        for child in children if sys.platform != "win32" else ():
            child.send_signal(number)

    known = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, pass_on) for number in known}
    try:
        return _wait(children, timeout)
    finally:
        for child in children:
            child.kill()
        for number, handler in before.items():
            signal.signal(number, handler)


def variables(count: int) -> Mapping[str, str]:
    """Return the environment of so many processes, but for their ranks, as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = max(1, (os.cpu_count() or 1) // count)
    return {
        "OMP_NUM_THREADS": str(threads),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        PARENT: str(os.getpid()),
    }


def _wait(children: Sequence[subprocess.Popen[bytes]], timeout: float) -> int:
    """Wait until all have ended, which they get some time for when one has failed."""
    end = math.inf
    while any(child.poll() is None for child in children):
        codes = [child.returncode for child in children if child.returncode]
        if codes:
            # Who ends with a code has told why; of one that was killed, others tell.
            end = min(end, time.monotonic() + (GRACE if max(codes) > 0 else timeout + GRACE))
        if time.monotonic() > end:
            for child in children:
                child.kill()
        time.sleep(0.05)
    codes = [child.returncode for child in children]
    # Who was killed from outside has no code of its own; the others say 1.
    return next((code for code in codes if code > 0), 1 if any(codes) else 0)

"""Peers: the other processes of a run, and which of them are gone."""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from platform import node

PATIENCE = 3.0
"""How many seconds a process may take to be gone, after it was last heard."""
GONE, STOPPED = "ZX", "Tt"
"""What Linux calls the state of a process that is dead, or stopped."""


class Peers:
    """The processes of a run by their ranks: on which machine each is, and its number there."""

    def __init__(self, rank: int, known: Sequence[Sequence[int]]) -> None:
        self.rank, self.known = rank, known

    @staticmethod
    def introduce() -> tuple[int, int]:
        """Return what others need to know of this process."""
        return zlib.crc32(node().encode()), os.getpid()

    def find_lost(self, reason: str) -> tuple[str, bool]:
        """Say which processes do not answer, and whether it is this process that tells."""
        others = [rank for rank in range(len(self.known)) if rank != self.rank]
        machine = self.known[self.rank][0]
        here = [rank for rank in others if self.known[rank][0] == machine]
        lost: dict[int, str] = {}
        end = time.monotonic() + PATIENCE
        while not lost and time.monotonic() < end and here:
            lost = {rank: what for rank in here if (what := _trouble(self.known[rank][1]))}
            time.sleep(0.05)
        if not lost:
            names = " or ".join(str(rank) for rank in others)
            late = "in time" if "imed out" in reason or "imeout" in reason else "any more"
            return f"process {names} of {len(self.known)} does not answer {late}", True
        left = [rank for rank in [*here, self.rank] if rank not in lost]
        said = ", ".join(
            f"process {rank} of {len(self.known)} (PID {self.known[rank][1]}) {what}"
            for rank, what in lost.items()
        )
        return said, self.rank == min(left)


def _trouble(number: int) -> str:
    """Say what is wrong with a process of this machine, if that can be seen."""
    if sys.platform == "win32":  # where to ask would be to interrupt
        return ""
    try:
        os.kill(number, 0)
        # The state follows the name, which is in brackets and may hold anything.
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return "is gone"
    except OSError:  # no /proc, or not ours to look at
        return ""
    if state in GONE:
        return "is gone"
    return "is stopped" if state in STOPPED else ""

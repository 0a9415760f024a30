"""Find out which ranks of a run are lost, so that an error can name them.

torch's ``monitored_barrier`` names ranks, too, but only those that miss this barrier, and only
with gloo; a collective that fails does not say which rank was lost.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from platform import node

DETECTION_SECONDS = 3.0
"""How long a process may take to disappear after a collective operation has failed."""
DEAD_STATES, STOPPED_STATES = "ZX", "Tt"
"""Process states in Linux' /proc/PID/stat."""


class Peers:
    """The machine and process ID of every rank.

    Args:
        rank: This process's rank.
        identities: What ``identify`` returned on each rank.
    """

    def __init__(self, rank: int, identities: Sequence[Sequence[int]]) -> None:
        self.rank, self.identities = rank, identities

    @staticmethod
    def identify() -> tuple[int, int]:
        """Return a number for this machine, and this process's ID."""
        return zlib.crc32(node().encode()), os.getpid()

    def describe_lost(self, reason: str) -> tuple[str, bool]:
        """Name the ranks that do not answer; also return whether this rank should print it.

        Processes of this machine are looked up. If none of them is lost, every other rank may
        be, and ``reason``, torch's error, tells whether they timed out.
        """
        others = [rank for rank in range(len(self.identities)) if rank != self.rank]
        machine = self.identities[self.rank][0]
        local = [rank for rank in others if self.identities[rank][0] == machine]
        lost: dict[int, str] = {}
        end = time.monotonic() + DETECTION_SECONDS
        while not lost and time.monotonic() < end and local:
            pids = {rank: self.identities[rank][1] for rank in local}
            lost = {rank: state for rank, pid in pids.items() if (state := _lost_state(pid))}
            time.sleep(0.05)
        if not lost:
            names = " or ".join(str(rank) for rank in others)
            late = "in time" if "imed out" in reason or "imeout" in reason else "any more"
            return f"process {names} of {len(self.identities)} does not answer {late}", True
        left = [rank for rank in [*local, self.rank] if rank not in lost]
        text = ", ".join(
            f"process {rank} of {len(self.identities)} (PID {self.identities[rank][1]}) {state}"
            for rank, state in lost.items()
        )
        return text, self.rank == min(left)


def _lost_state(pid: int) -> str:
    """Return "is gone" or "is stopped"; an empty string if the process runs or is unknown."""
    if sys.platform == "win32":  # there os.kill would terminate it
        return ""
    try:
        os.kill(pid, 0)
        # The state follows the name, which is in parentheses and may contain anything.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return "is gone"
    except OSError:  # there is no /proc, or no permission
        return ""
    if state in DEAD_STATES:
        return "is gone"
    return "is stopped" if state in STOPPED_STATES else ""

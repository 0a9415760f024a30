"""Why a run of a sweep failed, in one line."""

from __future__ import annotations

import signal
from pathlib import Path

from celstack.runs.sweep.folders import is_finished

LONGEST = 500


def why(folder: Path, complaints: str, code: int | None) -> str:
    """Return why a run failed, by what it complained of last; nothing if it is finished."""
    if is_finished(folder) and not code:
        return ""
    if code is not None and code < 0:
        return f"its process was ended by {_name(-code)}{_hint(-code)}"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("celstack: ")]
    said = (own or lines or ["it ended without scores, and without a word"])[-1]
    return said.removeprefix("celstack: ")[:LONGEST]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _hint(number: int) -> str:
    killed = number == getattr(signal, "SIGKILL", None)
    return ", as systems do that run out of memory" if killed else ""

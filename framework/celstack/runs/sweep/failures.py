"""Failure reasons of the runs of a sweep, in one line each."""

from __future__ import annotations

import signal
from pathlib import Path

from celstack.runs.finished import is_finished

MAX_REASON_CHARS = 500


def failure_reason(folder: Path, stderr: str, exit_code: int | None) -> str:
    """Return why a run failed; empty if it is finished.

    Args:
        folder: The folder of the run.
        stderr: What its process wrote to standard error; its last error is the reason.
        exit_code: The exit code of its process, negative for a signal; None if unknown.
    """
    if is_finished(folder) and not exit_code:
        return ""
    if exit_code is not None and exit_code < 0:
        return f"its process was killed by {_name(-exit_code)}{_hint(-exit_code)}"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("celstack: ")]
    reason = (own or lines or ["it exited without scores and without an error message"])[-1]
    return reason.removeprefix("celstack: ")[:MAX_REASON_CHARS]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _hint(number: int) -> str:
    killed = number == getattr(signal, "SIGKILL", None)
    return " (possibly out of memory)" if killed else ""

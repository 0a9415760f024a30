"""What several commands do with run folders and output files named by the user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def distinct_folders(runs: Iterable[str]) -> list[Path]:
    """Return the run folders among these paths, each once.

    Summaries of several seeds lie beside their runs, so that a pattern such as
    ``runs/smoke/*`` matches them, too; they are left out.
    """
    from celstack.errors import CelstackError
    from celstack.runs.seeds import SUMMARY_SUFFIXES

    folders = {Path(run).resolve(): Path(run) for run in runs}
    found = [
        folder for folder in folders.values() if not folder.name.endswith(SUMMARY_SUFFIXES)
    ]
    if not found:
        raise CelstackError("none of the paths is a run folder")
    return found


def default_output(command: str, run: Path) -> str:
    """Return the name of a command's output for a run: ``COMMAND-RECIPE-RUN``."""
    real = run.resolve()
    return f"{command}-{real.parent.name}-{real.name}"


def write_output(out: str, text: str) -> None:
    """Write the file that ``--out`` names."""
    from celstack.errors import CelstackError
    from celstack.files import write_atomic

    try:
        write_atomic(Path(out), text)
    except OSError as error:
        raise CelstackError(f"--out {out}: {error.strerror}") from error

"""`celstack compare`: set several runs side by side in one page."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the folder of a finished run")
    parser.add_argument(
        "--out", metavar="FILE", default="compare.html", help="the page (compare.html)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Read the runs and write the page."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import read_finished
    from celstack.runs.seeds import SUMMARY_SUFFIXES

    folders = {Path(run).resolve(): Path(run) for run in arguments.runs}
    # What sums several seeds up lies beside their runs, where runs/smoke/* names it, too.
    folders = {
        key: run for key, run in folders.items() if not run.name.endswith(SUMMARY_SUFFIXES)
    }
    if not folders:
        raise CelstackError("there is no run among what was named")
    for folder in folders.values():
        read_finished(folder)

    from celstack.cli.output import say
    from celstack.files import write_whole
    from celstack.report.compare_page import make_comparison

    page = make_comparison(list(folders.values()))
    try:
        write_whole(Path(arguments.out), page)
    except OSError as error:
        raise CelstackError(f"--out {arguments.out}: {error.strerror}") from error
    count = "1 run" if len(folders) == 1 else f"{len(folders)} runs side by side"
    say(f"open {arguments.out} in a browser: {count}")

"""`celstack report`: write the report page of a run again, from its folder."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")


def main(arguments: argparse.Namespace) -> None:
    """Write report.html and print where it is."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)

    from celstack.cli.output import print_line
    from celstack.report.run_page import make_page
    from celstack.runs.directory import RunDirectory
    from celstack.runs.open import open_run

    run = open_run(folder)
    page = make_page(folder, run.assembly, run.decomposer)
    try:
        path = RunDirectory(folder).save_page(page.text)
    except OSError as error:
        raise CelstackError(f"{folder}: cannot write there: {error.strerror}") from error
    for sentence in page.missing:
        print_line(sentence)
    print_line(f"Report: {path} (open it in a browser)")

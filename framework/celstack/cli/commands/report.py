"""`celstack report`: write the page of a run again, from its folder alone."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run")


def main(arguments: argparse.Namespace) -> None:
    """Open the run, make its page, and say where it is."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)

    from celstack.cli.output import say
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
        say(sentence)
    say(f"open {path} in a browser")

"""`celstack table`: set finished runs side by side with published figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.runs.comparison import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the folder of a finished run")
    parser.add_argument("--each", action="store_true", help="show every seed, too")
    parser.add_argument("--out", metavar="FILE", help="write Markdown to a file instead")


def main(arguments: argparse.Namespace) -> None:
    """Read the runs and print a table: Markdown, unless a person is looking at a terminal."""
    from celstack.cli.output import say
    from celstack.errors import CelstackError
    from celstack.files import write_whole
    from celstack.runs.comparison import as_markdown, compare
    from celstack.runs.finished import read_finished
    from celstack.runs.seeds import SUMMARY_SUFFIXES

    folders = {Path(run).resolve(): Path(run) for run in arguments.runs}
    # What sums several seeds up lies beside their runs, where runs/smoke/* names it, too.
    folders = {
        key: run for key, run in folders.items() if not run.name.endswith(SUMMARY_SUFFIXES)
    }
    if not folders:
        raise CelstackError("there is no run among what was named")
    runs = [read_finished(folder) for folder in folders.values()]
    comparisons = compare(runs, arguments.each)
    if arguments.out is None:
        show(comparisons)
        return
    try:
        write_whole(Path(arguments.out), as_markdown(comparisons))
    except OSError as error:
        raise CelstackError(f"--out {arguments.out}: {error.strerror}") from error
    say(f"wrote {arguments.out}")


def show(comparisons: Sequence[Comparison]) -> None:
    """Print tables: drawn with lines on a terminal, else as Markdown."""
    from celstack.cli.output import say
    from celstack.runs.comparison import PUBLISHED, as_markdown

    if not sys.stdout.isatty():
        say(as_markdown(comparisons).rstrip("\n"))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for comparison in comparisons:
        table = Table(title=Text(comparison.title), title_justify="left")
        for index, heading in enumerate(comparison.heading()):
            table.add_column(Text(heading), justify="left" if index < 3 else "right")
        for row in comparison.rows:
            style = "dim" if row.runs == PUBLISHED else None
            table.add_row(*map(Text, comparison.cells(row)), style=style)
        console.print(table)
        for note in comparison.notes:
            console.print(Text(f"- {note}"))

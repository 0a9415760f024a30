"""`celstack table`: compare finished runs with published results in a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.runs.comparison import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a finished run")
    parser.add_argument("--each", action="store_true", help="add a row for every seed")
    parser.add_argument("--out", metavar="FILE", help="write Markdown to this file instead")


def main(arguments: argparse.Namespace) -> None:
    """Read the runs and print or write their table."""
    from celstack.cli.output import print_line
    from celstack.cli.run_folders import distinct_folders, write_output
    from celstack.runs.comparison import as_markdown, compare
    from celstack.runs.finished import read_finished

    runs = [read_finished(folder) for folder in distinct_folders(arguments.runs)]
    comparisons = compare(runs, arguments.each)
    if arguments.out is None:
        print_tables(comparisons)
        return
    write_output(arguments.out, as_markdown(comparisons))
    print_line(f"Table: {arguments.out}")


def print_tables(comparisons: Sequence[Comparison]) -> None:
    """Print tables: with ruled lines in a terminal, else as Markdown."""
    from celstack.cli.output import print_line
    from celstack.runs.comparison import PUBLISHED, as_markdown

    if not sys.stdout.isatty():
        print_line(as_markdown(comparisons).rstrip("\n"))
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

"""`celstack compare`: compare several runs in one HTML page."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="compare.html",
        help="the page to write (default: compare.html)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Read the runs and write the page."""
    from celstack.cli.run_folders import distinct_folders, write_output
    from celstack.runs.finished import read_finished

    folders = distinct_folders(arguments.runs)
    for folder in folders:
        read_finished(folder)

    from celstack.cli.output import print_line
    from celstack.report.compare_page import make_comparison

    write_output(arguments.out, make_comparison(folders))
    count = "1 run" if len(folders) == 1 else f"{len(folders)} runs"
    print_line(f"Comparison of {count}: {arguments.out} (open it in a browser)")

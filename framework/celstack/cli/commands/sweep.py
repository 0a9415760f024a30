"""`celstack sweep`: run a recipe with every combination of some options, and compare."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from celstack.cli.commands.run import DEFAULT_OUT, add_overrides

if TYPE_CHECKING:
    from celstack.runs.sweep.results import SweepResults
    from celstack.runs.sweep.run import Runner


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recipe", help="path of a recipe, or name of a bundled one")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="PATH=VALUE,...",
        help="values of an option, as in --grid seed=0,1,2; may be repeated, for all "
        "combinations; commas inside [], {} and quotes do not separate values",
    )
    add_overrides(parser)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="number of parallel runs, which share the cores (default: 1; on a cluster, all)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=f"the sweep's folder (default: {DEFAULT_OUT}/sweep-RECIPE-PATH...)",
    )
    parser.add_argument("--device", default="auto", help="as of run-recipe (default: auto)")
    parser.add_argument(
        "--launcher",
        choices=("slurm", "local"),
        help="submit runs as jobs with submitit (celstack[cluster]); local: on this machine",
    )
    parser.add_argument(
        "--launcher-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of submitit's executor, as in timeout_min=120 or "
        "slurm_partition=gpu; may be repeated",
    )
    parser.add_argument("--quiet", action="store_true", help="print only the sweep's folder")


def main(arguments: argparse.Namespace) -> None:
    """Validate all runs, run those that are not finished, and write a summary."""
    from celstack.errors import CelstackError
    from celstack.registry.catalog import Catalog
    from celstack.runs.sweep.folders import default_folder, locked_folder
    from celstack.runs.sweep.plan import make_plan
    from celstack.runs.sweep.slurm import make_executor, read_settings, run_on_cluster

    if arguments.jobs is not None and arguments.jobs < 1:
        raise CelstackError(f"--jobs {arguments.jobs}: must be at least 1")
    if arguments.launcher_set and not arguments.launcher:
        raise CelstackError("--launcher-set: needs --launcher")
    settings = read_settings(arguments.launcher_set) if arguments.launcher else {}
    catalog = Catalog()
    plan = make_plan(arguments.recipe, arguments.set, arguments.grid, catalog)

    from celstack.cli.output import print_line
    from celstack.runs.sweep.local import run_locally
    from celstack.runs.sweep.run import check_machine, check_parts, run_sweep

    default = default_folder(Path(DEFAULT_OUT), plan.runs[0].resolved.name, plan.axes)
    folder = Path(arguments.out) if arguments.out else default
    assemblies = check_parts(plan, catalog)
    device = arguments.device
    steps: list[int | None] = [None] * len(plan.runs)
    if arguments.launcher:
        executor = make_executor(arguments.launcher, folder / "jobs", settings, arguments.jobs)
        runner: Runner = partial(run_on_cluster, executor=executor, device=device)
    else:
        steps = check_machine(plan, assemblies, device)
        runner = partial(run_locally, jobs=arguments.jobs or 1, device=device)
    announce = (lambda _: None) if arguments.quiet else print_line
    with locked_folder(folder):
        results = run_sweep(plan, folder, runner, steps, arguments.quiet, announce)
        if results.runs:
            _save_summary(results, folder, arguments.quiet)
    if arguments.quiet:
        print_line(str(folder))
    _raise_on_failures(results)


def _save_summary(results: SweepResults, folder: Path, quiet: bool) -> None:
    """Print the table, and write it as Markdown, as JSON and as a page with plots."""
    from celstack.cli.commands.table import print_tables
    from celstack.cli.output import print_line, print_warning
    from celstack.files import to_json, write_atomic
    from celstack.report.sweep_page import make_sweep_page
    from celstack.runs.comparison import as_markdown

    table = [results.table()]
    if not quiet:
        print_tables(table)
    try:
        write_atomic(folder / "sweep.json", to_json(results.to_dict()))
        write_atomic(folder / "sweep.md", as_markdown(table))
        write_atomic(folder / "sweep.html", make_sweep_page(results))
    except OSError as error:
        print_warning(f"the summary cannot be written: {error.strerror}")
        return
    if not quiet:
        print_line(f"Summary: {folder / 'sweep.html'} (open it in a browser)")


def _raise_on_failures(results: SweepResults) -> None:
    from celstack.cli.output import print_error
    from celstack.errors import RunFailedError
    from celstack.runs.sweep.grid import format_cell

    for cell, reason in results.failures:
        print_error(f"{format_cell(cell)}: failed: {reason}")
    if results.failures:
        count = len(results.failures) + len(results.runs)
        raise RunFailedError(
            f"{len(results.failures)} of {count} runs failed; the same command runs them again"
        )

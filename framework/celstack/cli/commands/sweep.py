"""`celstack sweep`: run a recipe with every combination of some options, and compare."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from celstack.cli.commands.run import OUT, add_overrides

if TYPE_CHECKING:
    from celstack.runs.sweep.results import SweepResults
    from celstack.runs.sweep.run import Runner


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", help="a path, or the name of a bundled recipe")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="PATH=VALUE,...",
        help="what varies, as in --grid seed=0,1,2; may be repeated, for all combinations; "
        "commas inside of [], {} and quotes part nothing",
    )
    add_overrides(parser)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="how many runs go on at a time, sharing the cores (1; on a cluster, all)",
    )
    parser.add_argument(
        "--out", metavar="DIR", help=f"the sweep's folder ({OUT}/sweep-RECIPE-PATH...)"
    )
    parser.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:1, mps ... (auto: the best)"
    )
    parser.add_argument(
        "--launcher",
        choices=("slurm", "local"),
        help="submit runs as jobs, by submitit (celstack[cluster]); local tries it out here",
    )
    parser.add_argument(
        "--launcher-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what to ask a cluster for, in submitit's words, as in timeout_min=120 or "
        "slurm_partition=gpu; may be repeated",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but the sweep's folder"
    )


def main(arguments: argparse.Namespace) -> None:
    """Check everything, run what is left, sum up; a run that fails costs only itself."""
    from celstack.errors import CelstackError
    from celstack.registry.catalog import Catalog
    from celstack.runs.sweep.folders import default_folder, locked_folder
    from celstack.runs.sweep.plan import make_plan
    from celstack.runs.sweep.slurm import make_executor, read_settings, run_on_cluster

    if arguments.jobs is not None and arguments.jobs < 1:
        raise CelstackError(f"--jobs {arguments.jobs}: must be at least 1")
    if arguments.launcher_set and not arguments.launcher:
        raise CelstackError("--launcher-set: says nothing without --launcher")
    settings = read_settings(arguments.launcher_set) if arguments.launcher else {}
    catalog = Catalog()
    plan = make_plan(arguments.recipe, arguments.set, arguments.grid, catalog)

    from celstack.cli.output import say
    from celstack.runs.sweep.local import run_locally
    from celstack.runs.sweep.run import check_machine, check_parts, run_sweep

    usual = default_folder(Path(OUT), plan.runs[0].resolved.name, plan.axes)
    folder = Path(arguments.out) if arguments.out else usual
    assemblies = check_parts(plan, catalog)
    device = arguments.device
    steps: list[int | None] = [None] * len(plan.runs)
    if arguments.launcher:
        executor = make_executor(arguments.launcher, folder / "jobs", settings, arguments.jobs)
        runner: Runner = partial(run_on_cluster, executor=executor, device=device)
    else:
        steps = check_machine(plan, assemblies, device)
        runner = partial(run_locally, jobs=arguments.jobs or 1, device=device)
    announce = (lambda _: None) if arguments.quiet else say
    with locked_folder(folder):
        results = run_sweep(plan, folder, runner, steps, arguments.quiet, announce)
        if results.runs:
            _sum_up(results, folder, arguments.quiet)
    if arguments.quiet:
        say(str(folder))
    _tell_failures(results)


def _sum_up(results: SweepResults, folder: Path, quiet: bool) -> None:
    """Print the table and save it, for people, for programs and as a page with plots."""
    from celstack.cli.commands.table import show
    from celstack.cli.output import complain, say
    from celstack.files import to_json, write_whole
    from celstack.report.sweep_page import make_sweep_page
    from celstack.runs.comparison import as_markdown

    table = [results.table()]
    if not quiet:
        show(table)
    try:
        write_whole(folder / "sweep.json", to_json(results.to_dict()))
        write_whole(folder / "sweep.md", as_markdown(table))
        write_whole(folder / "sweep.html", make_sweep_page(results))
    except OSError as error:
        complain(f"warning: the summary cannot be written: {error.strerror}", 1)
        return
    if not quiet:
        say(f"open {folder / 'sweep.html'} in a browser: plots, table, sprites")


def _tell_failures(results: SweepResults) -> None:
    from celstack.cli.output import complain
    from celstack.errors import RunFailedError
    from celstack.runs.sweep.grid import format_cell

    for cell, reason in results.failures:
        complain(f"{format_cell(cell)}: failed: {reason}", 1)
    if results.failures:
        count = len(results.failures) + len(results.runs)
        raise RunFailedError(
            f"{len(results.failures)} of {count} runs failed; the same command tries them again"
        )

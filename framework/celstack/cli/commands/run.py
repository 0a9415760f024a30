"""`run-recipe`: train a model of sprites, as a recipe configures it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.recipe.resolved import ResolvedRecipe
    from celstack.registry.catalog import Catalog
    from celstack.runs.finished import FinishedRun


DEFAULT_OUT = "runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recipe", nargs="?", help="path of a recipe, or name of a bundled one")
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="resume the stopped run in this folder, instead of starting one",
    )
    add_overrides(parser)
    parser.add_argument(
        "--out", metavar="DIR", help=f"folder for run folders (default: {DEFAULT_OUT})"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="short for --set seed=N")
    parser.add_argument(
        "--seeds",
        metavar="N",
        help="run N seeds, or those of a list such as 0,1,7, one after the other, and "
        "write a summary",
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda, cuda:1, mps ... (default: auto, the fastest available)",
    )
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="train in N processes on this machine, which share each batch",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="how long processes wait for one that does not answer (default: 120)",
    )
    parser.add_argument("--quiet", action="store_true", help="print only the run folder")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Declare the option ``--set``."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="override one value of the recipe, as in --set selector.sweeps=3; may be repeated",
    )


def main(arguments: argparse.Namespace) -> None:
    """Resolve, assemble and train; nothing is written before the recipe is validated."""
    from celstack.errors import CelstackError

    if arguments.resume is not None:
        from celstack.cli.commands import resume

        resume.main(arguments)
        return
    if arguments.recipe is None:
        raise CelstackError(
            "no recipe given; name one ('celstack recipes' lists the bundled ones), "
            "or resume a run with --resume RUN"
        )

    from celstack.cli.run_one import launch_processes, print_summary, start_run
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    recipes = [
        resolve(read_recipe(arguments.recipe, overrides), catalog)
        for overrides in _overrides(arguments)
    ]
    launch_processes(arguments)
    if not arguments.quiet:
        _print_auto_values(recipes[0])
    if arguments.seeds is not None:
        _run_seeds(recipes, catalog, arguments)
        return
    out, quiet = Path(arguments.out or DEFAULT_OUT), arguments.quiet
    device, timeout = arguments.device, arguments.timeout
    print_summary(*start_run(recipes[0], catalog, out, device, quiet, timeout), quiet)


def _print_auto_values(resolved: ResolvedRecipe) -> None:
    """Print the values that were chosen for options set to ``auto``."""
    from celstack.cli.output import print_line
    from celstack.training.distributed.launcher import is_main_process

    if resolved.chosen and is_main_process():
        values = ", ".join(f"{place} = {value}" for place, value in resolved.chosen.items())
        print_line(f"Auto-selected (override with --set): {values}")


def _overrides(arguments: argparse.Namespace) -> list[list[str]]:
    """Return the overrides of each run: one run, or one per seed."""
    if arguments.seeds is None:
        seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
        return [[*arguments.set, *seed]]

    from celstack.errors import CelstackError
    from celstack.runs.seeds import parse_seeds

    seeds_set = [text for text in arguments.set if text.partition("=")[0].strip() == "seed"]
    if arguments.seed is not None or seeds_set:
        raise CelstackError("--seeds: sets the seeds already; remove --seed and --set seed")
    return [[*arguments.set, f"seed={seed}"] for seed in parse_seeds(arguments.seeds)]


def _run_seeds(
    recipes: Sequence[ResolvedRecipe], catalog: Catalog, arguments: argparse.Namespace
) -> None:
    """Run one seed after the other; in any case, summarize those that finished."""
    from celstack.cli.output import print_error, print_line
    from celstack.cli.run_one import start_run
    from celstack.errors import ProcessLostError, RunFailedError
    from celstack.runs.finished import read_finished
    from celstack.training.distributed.launcher import is_main_process

    out = Path(arguments.out or DEFAULT_OUT)
    finished: list[FinishedRun] = []
    failures: dict[int, str] = {}
    try:
        for number, resolved in enumerate(recipes, start=1):
            seed = resolved.root.options["seed"]
            if is_main_process() and not arguments.quiet:
                print_line(f"seed {seed}: run {number} of {len(recipes)}")
            try:
                folder, _ = start_run(
                    resolved,
                    catalog,
                    out,
                    arguments.device,
                    arguments.quiet,
                    arguments.timeout,
                )
            except KeyboardInterrupt as stopped:
                left = [one.root.options["seed"] for one in recipes[number:]]
                raise type(stopped)(_append_remaining_seeds(str(stopped), left)) from None
            except ProcessLostError:
                raise  # the other seeds would fail in the same way
            except RunFailedError as error:
                failures[seed] = str(error)
                if is_main_process():
                    print_error(f"seed {seed} failed: {error}")
                continue
            if is_main_process():
                finished.append(read_finished(folder))
                print_line(str(folder))
    finally:
        if finished:
            _print_seed_summary(finished, failures, arguments.quiet)
    if failures:
        seeds = ", ".join(map(str, failures))
        raise RunFailedError(f"{len(failures)} of {len(recipes)} runs failed: seed {seeds}")


def _append_remaining_seeds(message: str, left: Sequence[int]) -> str:
    """Add how to run the remaining seeds; the command that resumes stays at the end."""
    if not left:
        return message
    seeds = f"--seeds {','.join(map(str, left))}" if len(left) > 1 else f"--seed {left[0]}"
    first, _, rest = message.partition("; ")
    return f"{first}; remaining seeds not started ({seeds}); {rest}"


def _print_seed_summary(
    finished: Sequence[FinishedRun], failures: dict[int, str], quiet: bool
) -> None:
    """Print the table of all seeds, unless quiet, and write it to files."""
    from celstack.cli.commands.table import print_tables
    from celstack.cli.output import print_line, print_warning
    from celstack.runs.comparison import compare
    from celstack.runs.seeds import save_summary

    if not quiet:
        print_line()
        print_tables(compare(finished, each=True))
    try:
        table = save_summary(finished, failures)
    except OSError as error:
        print_warning(f"the summary cannot be written: {error.strerror}")
        return
    if not quiet:
        print_line(f"Summary: {table} and {table.with_suffix('.json').name}")

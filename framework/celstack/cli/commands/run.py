"""`run-recipe`: learn sprites from images, as a recipe says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.recipe.resolved import ResolvedRecipe
    from celstack.registry.catalog import Catalog
    from celstack.runs.finished import FinishedRun


OUT = "runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", nargs="?", help="a path, or the name of a bundled recipe")
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on, instead, with a run that was stopped, given by its folder",
    )
    add_overrides(parser)
    parser.add_argument("--out", metavar="DIR", help=f"where runs go ({OUT})")
    parser.add_argument("--seed", type=int, metavar="N", help="short for --set seed=N")
    parser.add_argument(
        "--seeds",
        metavar="N",
        help="run N seeds one after the other, or those of a list such as 0,1,7, and sum up",
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda, cuda:1, mps ... (auto: the best there is)",
    )
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="train one run in N processes of this machine, each with its share of a batch",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="how long they wait for one that does not answer (120)",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but the run's folder"
    )


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Let a command take overrides."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change one value of the recipe, as in --set selector.sweeps=3; may be repeated",
    )


def main(arguments: argparse.Namespace) -> None:
    """Resolve, assemble, train; write nothing before the recipe is known to be sound."""
    from celstack.errors import CelstackError

    if arguments.resume is not None:
        from celstack.cli.commands import resume

        resume.main(arguments)
        return
    if arguments.recipe is None:
        raise CelstackError(
            "say which recipe to run ('celstack recipes' lists the bundled ones), "
            "or --resume RUN to go on with a run"
        )

    from celstack.cli.run_one import begin, spread, tell
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    recipes = [
        resolve(read_recipe(arguments.recipe, overrides), catalog)
        for overrides in _overrides(arguments)
    ]
    spread(arguments)
    if not arguments.quiet:
        _tell_chosen(recipes[0])
    if arguments.seeds is not None:
        _run_seeds(recipes, catalog, arguments)
        return
    out, quiet = Path(arguments.out or OUT), arguments.quiet
    device, timeout = arguments.device, arguments.timeout
    tell(*begin(recipes[0], catalog, out, device, quiet, timeout), quiet)


def _tell_chosen(resolved: ResolvedRecipe) -> None:
    """Say what was chosen for the images at hand, so that it can be said otherwise."""
    from celstack.cli.output import say
    from celstack.training.distributed.launcher import is_main_process

    if resolved.chosen and is_main_process():
        values = ", ".join(f"{place} = {value}" for place, value in resolved.chosen.items())
        say(f"chosen for these images (--set says otherwise): {values}")


def _overrides(arguments: argparse.Namespace) -> list[list[str]]:
    """Return what each run changes in the recipe."""
    if arguments.seeds is None:
        seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
        return [[*arguments.set, *seed]]

    from celstack.errors import CelstackError
    from celstack.runs.seeds import parse_seeds

    said = [text for text in arguments.set if text.partition("=")[0].strip() == "seed"]
    if arguments.seed is not None or said:
        raise CelstackError("--seeds: says already which seeds to run; leave --seed out")
    return [[*arguments.set, f"seed={seed}"] for seed in parse_seeds(arguments.seeds)]


def _run_seeds(
    recipes: Sequence[ResolvedRecipe], catalog: Catalog, arguments: argparse.Namespace
) -> None:
    """Run one seed after the other; whatever happens, sum up those that are finished."""
    from celstack.cli.output import complain, say
    from celstack.cli.run_one import begin
    from celstack.errors import ProcessLostError, RunFailedError
    from celstack.runs.finished import read_finished
    from celstack.training.distributed.launcher import is_main_process

    out = Path(arguments.out or OUT)
    finished: list[FinishedRun] = []
    failures: dict[int, str] = {}
    try:
        for number, resolved in enumerate(recipes, start=1):
            seed = resolved.root.options["seed"]
            if is_main_process() and not arguments.quiet:
                say(f"seed {seed}: run {number} of {len(recipes)}")
            try:
                folder, _ = begin(
                    resolved,
                    catalog,
                    out,
                    arguments.device,
                    arguments.quiet,
                    arguments.timeout,
                )
            except KeyboardInterrupt as stopped:
                left = [one.root.options["seed"] for one in recipes[number:]]
                raise type(stopped)(_with_others(str(stopped), left)) from None
            except ProcessLostError:
                raise  # the other seeds would miss it, too
            except RunFailedError as error:
                failures[seed] = str(error)
                if is_main_process():
                    complain(f"seed {seed} failed: {error}", 1)
                continue
            if is_main_process():
                finished.append(read_finished(folder))
                say(str(folder))
    finally:
        if finished:
            _sum_up(finished, failures, arguments.quiet)
    if failures:
        seeds = ", ".join(map(str, failures))
        raise RunFailedError(f"{len(failures)} of {len(recipes)} runs failed: seed {seeds}")


def _with_others(said: str, left: Sequence[int]) -> str:
    """Say, too, how to run the seeds that are left; the way on stays the last word."""
    if not left:
        return said
    seeds = f"--seeds {','.join(map(str, left))}" if len(left) > 1 else f"--seed {left[0]}"
    first, _, rest = said.partition("; ")
    return f"{first}; other seeds have not begun ({seeds}); {rest}"


def _sum_up(finished: Sequence[FinishedRun], failures: dict[int, str], quiet: bool) -> None:
    """Print the table of all seeds, unless only folders are asked for, and save it."""
    from celstack.cli.commands.table import show
    from celstack.cli.output import complain, say
    from celstack.runs.comparison import compare
    from celstack.runs.seeds import save_summary

    if not quiet:
        say()
        show(compare(finished, each=True))
    try:
        table = save_summary(finished, failures)
    except OSError as error:
        complain(f"warning: the summary cannot be written: {error.strerror}", 1)
        return
    if not quiet:
        say(f"summed up in {table} and {table.with_suffix('.json').name}")

"""`run-recipe`: learn sprites from images, as a recipe says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.assembly import Assembly
    from celstack.catalog import Catalog
    from celstack.finished import FinishedRun
    from celstack.resolved import ResolvedRecipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", help="a path, or the name of a bundled recipe")
    add_overrides(parser)
    parser.add_argument("--out", default="runs", metavar="DIR", help="where runs go (runs)")
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
    from celstack.catalog import Catalog
    from celstack.recipe import read_recipe
    from celstack.resolve import resolve

    catalog = Catalog()
    recipes = [
        resolve(read_recipe(arguments.recipe, overrides), catalog)
        for overrides in _overrides(arguments)
    ]
    if arguments.seeds is not None:
        _run_seeds(recipes, catalog, arguments)
        return

    from celstack.cli import say

    folder, scores = _run(recipes[0], catalog, arguments)
    if arguments.quiet:
        say(str(folder))
        return
    for name, score in scores.items():
        say(f"{name:>12}  {score:.4f}")
    say(f"sprites, examples and metrics are in {folder}")
    page = folder / "report.html"
    if page.is_file():
        say(f"open {page} in a browser: what was learned, how well, examples")
    else:
        say(f"look at {folder / 'examples.png'}: inputs, reconstructions, layers")


def _overrides(arguments: argparse.Namespace) -> list[list[str]]:
    """Return what each run changes in the recipe."""
    if arguments.seeds is None:
        seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
        return [[*arguments.set, *seed]]

    from celstack.errors import CelstackError
    from celstack.seeds import parse_seeds

    said = [text for text in arguments.set if text.partition("=")[0].strip() == "seed"]
    if arguments.seed is not None or said:
        raise CelstackError("--seeds: says already which seeds to run; leave --seed out")
    return [[*arguments.set, f"seed={seed}"] for seed in parse_seeds(arguments.seeds)]


def _run(
    resolved: ResolvedRecipe, catalog: Catalog, arguments: argparse.Namespace
) -> tuple[Path, dict[str, float]]:
    """Run one recipe; return its folder and its scores."""
    from celstack.assemble import assemble
    from celstack.device import find_device
    from celstack.errors import RunFailedError
    from celstack.rundir import RunDirectory
    from celstack.train import run

    assembly = assemble(resolved, catalog)
    # Neither a device nor images that are not there must leave a folder behind.
    find_device(arguments.device)
    _find_images(assembly)
    if arguments.quiet:
        loud = [observer for observer in assembly.observers if observer.terminal]
        for observer in loud:
            assembly.observers.remove(observer)
    directory = RunDirectory.create(Path(arguments.out), resolved.name, assembly.seed)
    try:
        directory.save_recipe(resolved)
        return directory.folder, run(assembly, directory, arguments.device).scores
    except KeyboardInterrupt:
        checkpoint = directory.folder / "checkpoint.pt"
        saved = f"what was learned is in {checkpoint}"
        raise KeyboardInterrupt(
            f"interrupted; {saved if checkpoint.exists() else 'nothing was learned yet'}"
        ) from None
    except OSError as error:
        raise RunFailedError(f"the run in {directory.folder} failed: {_say(error)}") from error
    finally:
        directory.close()


def _find_images(assembly: Assembly) -> None:
    """Look for all images that the run needs, or make them: not only once it has learned."""
    from celstack.errors import RunFailedError

    try:
        for split in ("train", assembly.evaluation.split):
            assembly.dataset.count(split)
    except OSError as error:
        raise RunFailedError(f"{assembly.dataset.name}: no images: {_say(error)}") from error


def _say(error: OSError) -> str:
    from celstack.errors import one_line

    return f"{error.filename}: {error.strerror}" if error.filename else one_line(error)


def _run_seeds(
    recipes: Sequence[ResolvedRecipe], catalog: Catalog, arguments: argparse.Namespace
) -> None:
    """Run one seed after the other; whatever happens, sum up those that are finished."""
    from celstack.cli import complain, say
    from celstack.errors import RunFailedError
    from celstack.finished import read_finished

    finished: list[FinishedRun] = []
    failures: dict[int, str] = {}
    try:
        for number, resolved in enumerate(recipes, start=1):
            seed = resolved.root.options["seed"]
            if not arguments.quiet:
                say(f"seed {seed}: run {number} of {len(recipes)}")
            try:
                folder, _ = _run(resolved, catalog, arguments)
            except RunFailedError as error:
                failures[seed] = str(error)
                complain(f"seed {seed} failed: {error}", 1)
                continue
            finished.append(read_finished(folder))
            say(str(folder))
    finally:
        if finished:
            _sum_up(finished, failures, arguments.quiet)
    if failures:
        seeds = ", ".join(map(str, failures))
        raise RunFailedError(f"{len(failures)} of {len(recipes)} runs failed: seed {seeds}")


def _sum_up(finished: Sequence[FinishedRun], failures: dict[int, str], quiet: bool) -> None:
    """Print the table of all seeds, unless only folders are asked for, and save it."""
    from celstack.cli import complain, say
    from celstack.commands.table import show
    from celstack.comparison import compare
    from celstack.seeds import save_summary

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

"""`run-recipe --resume`: resume a stopped run, with bit-identical results."""

from __future__ import annotations

import argparse
from pathlib import Path


def main(arguments: argparse.Namespace) -> None:
    """Resume a run, unless it is finished; raise on options that would change it."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run, is_finished

    given = {
        "the recipe": arguments.recipe,
        "--set": arguments.set,
        "--seed": arguments.seed,
        "--seeds": arguments.seeds,
        "--out": arguments.out,
    }
    others = [name for name, value in given.items() if value not in (None, [])]
    if others:
        raise CelstackError(
            f"--resume: uses the recipe and the folder of the run; remove {', '.join(others)}"
        )
    folder = Path(arguments.resume)
    check_run(folder)
    if is_finished(folder):
        _print_finished(folder, arguments.quiet)
        return

    from celstack.cli.run_one import launch_processes, print_summary, resume_run
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog
    from celstack.runs.used_packages import read_used_packages

    catalog = Catalog(used=read_used_packages(folder))
    recipe = read_recipe(str(folder / "resolved.toml"))
    # Recipes of 0.1.0 lack this option; its behavior then was this value.
    recipe.table.setdefault("training", {}).setdefault("decay", "coupled")
    resolved = resolve(recipe, catalog)
    launch_processes(arguments)
    device, quiet, timeout = arguments.device, arguments.quiet, arguments.timeout
    print_summary(*resume_run(resolved, catalog, folder, device, quiet, timeout), quiet)


def _print_finished(folder: Path, quiet: bool) -> None:
    from celstack.cli.output import print_line

    print_line(str(folder) if quiet else f"{folder}: already finished")

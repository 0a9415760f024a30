"""`run-recipe --resume`: go on with a run that was stopped, bit for bit."""

from __future__ import annotations

import argparse
from pathlib import Path


def main(arguments: argparse.Namespace) -> None:
    """Go on with a run, or say that it is finished; refuse what would make it another."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    given = {
        "a recipe": arguments.recipe,
        "--set": arguments.set,
        "--seed": arguments.seed,
        "--seeds": arguments.seeds,
        "--out": arguments.out,
    }
    others = [name for name, value in given.items() if value not in (None, [])]
    if others:
        raise CelstackError(
            f"--resume: goes on with the run's own recipe, in its own folder; "
            f"leave {', '.join(others)} out"
        )
    folder = Path(arguments.resume)
    check_run(folder)
    if (folder / "metrics.json").is_file():
        _say_finished(folder, arguments.quiet)
        return

    from celstack.cli.run_one import go_on, spread, tell
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    recipe = read_recipe(str(folder / "resolved.toml"))
    # Runs of 0.1.0 do not say, and go on as they began.
    recipe.table.setdefault("training", {}).setdefault("decay", "coupled")
    resolved = resolve(recipe, catalog)
    spread(arguments)
    device, quiet, timeout = arguments.device, arguments.quiet, arguments.timeout
    tell(*go_on(resolved, catalog, folder, device, quiet, timeout), quiet)


def _say_finished(folder: Path, quiet: bool) -> None:
    from celstack.cli.output import say

    say(str(folder) if quiet else f"{folder}: is finished; nothing is left to do")

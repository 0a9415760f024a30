"""`run-recipe`: learn sprites from images, as a recipe says."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", help="a path, or the name of a bundled recipe")
    add_overrides(parser)
    parser.add_argument("--out", default="runs", metavar="DIR", help="where runs go (runs)")
    parser.add_argument("--seed", type=int, metavar="N", help="short for --set seed=N")
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
    from celstack.errors import RunFailedError, one_line
    from celstack.recipe import read_recipe
    from celstack.resolve import resolve

    overrides = list(arguments.set)
    if arguments.seed is not None:
        overrides.append(f"seed={arguments.seed}")
    recipe = read_recipe(arguments.recipe, overrides)
    catalog = Catalog()
    resolved = resolve(recipe, catalog)

    from celstack.assemble import assemble
    from celstack.cli import say
    from celstack.device import find_device
    from celstack.rundir import RunDirectory
    from celstack.train import run

    assembly = assemble(resolved, catalog)
    find_device(arguments.device)  # a device that is not there must not leave a folder behind
    if arguments.quiet:
        loud = [observer for observer in assembly.observers if observer.terminal]
        for observer in loud:
            assembly.observers.remove(observer)
    directory = RunDirectory.create(Path(arguments.out), resolved.name, assembly.seed)
    try:
        directory.save_recipe(resolved)
        trained = run(assembly, directory, arguments.device)
    except KeyboardInterrupt:
        checkpoint = directory.folder / "checkpoint.pt"
        saved = f"what was learned is in {checkpoint}"
        raise KeyboardInterrupt(
            f"interrupted; {saved if checkpoint.exists() else 'nothing was learned yet'}"
        ) from None
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename else one_line(error)
        raise RunFailedError(f"the run in {directory.folder} failed: {where}") from error
    finally:
        directory.close()
    if arguments.quiet:
        say(str(directory.folder))
        return
    for name, score in trained.scores.items():
        say(f"{name:>12}  {score:.4f}")
    say(f"sprites, examples and metrics are in {directory.folder}")
    say(f"look at {directory.folder / 'examples.png'}: inputs, reconstructions, layers")

"""One run by command: it begins or goes on, and however it ends, it says how to go on."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from celstack.recipe.assembly import Assembly
    from celstack.recipe.resolved import ResolvedRecipe
    from celstack.registry.catalog import Catalog
    from celstack.runs.directory import RunDirectory


def spread(arguments: argparse.Namespace) -> None:
    """Leave the run to several processes, if that is asked for, and end when they do."""
    from celstack.errors import CelstackError
    from celstack.training.distributed.launcher import (
        DEFAULT_TIMEOUT_SECONDS,
        is_distributed,
        launch,
    )

    count, timeout = arguments.devices, arguments.timeout
    if count is not None and count < 1:
        raise CelstackError(f"--devices {count}: say how many, 1 or more")
    if timeout is not None and not timeout > 0:
        raise CelstackError(f"--timeout {timeout}: say how many seconds, more than 0")
    if not is_distributed():
        if count is not None and count > 1:
            raise SystemExit(launch(sys.argv[1:], count, timeout or DEFAULT_TIMEOUT_SECONDS))
        return
    if count not in (None, int(os.environ["WORLD_SIZE"])):
        raise CelstackError(f"--devices {count}: torchrun says already how many there are")


def begin(
    resolved: ResolvedRecipe,
    catalog: Catalog,
    out: Path,
    device: str,
    quiet: bool,
    timeout: float | None = None,
) -> tuple[Path, dict[str, float]]:
    """Run a recipe in a new folder; return the folder and the scores."""
    from celstack.runs.directory import RunDirectory
    from celstack.training.distributed.setup import init_process_group

    assembly = _prepare(resolved, catalog, device, quiet)
    group, made = init_process_group(device, timeout), ""
    with group.raise_on_all_ranks():
        if group.is_main:
            made = str(RunDirectory.create(out, resolved.name, assembly.seed).folder)
    folder = Path(group.broadcast_bytes(made.encode()).decode())
    return _run(assembly, RunDirectory(folder), device, resolved)


def go_on(
    resolved: ResolvedRecipe,
    catalog: Catalog,
    folder: Path,
    device: str,
    quiet: bool,
    timeout: float | None = None,
) -> tuple[Path, dict[str, float]]:
    """Go on with the run of a folder; return the folder and the scores."""
    from celstack.runs.directory import RunDirectory
    from celstack.training.distributed.setup import init_process_group

    assembly = _prepare(resolved, catalog, device, quiet)
    init_process_group(device, timeout)
    return _run(assembly, RunDirectory(folder), device, None)


def tell(folder: Path, scores: dict[str, float], quiet: bool) -> None:
    """Say how well a run did and where to look."""
    from celstack.cli.output import say
    from celstack.training.distributed.launcher import is_main_process

    if not is_main_process():
        return
    if quiet:
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


def _prepare(resolved: ResolvedRecipe, catalog: Catalog, device: str, quiet: bool) -> Assembly:
    """Put the parts together; what is not there must not leave a folder behind."""
    from celstack.data.availability import require_images
    from celstack.recipe.build import assemble
    from celstack.system import find_device

    assembly = assemble(resolved, catalog)
    find_device(device)
    require_images(assembly.dataset, ("train", assembly.evaluation.split))
    if quiet:
        loud = [observer for observer in assembly.observers if observer.terminal]
        for observer in loud:
            assembly.observers.remove(observer)
    return assembly


def _run(
    assembly: Assembly, directory: RunDirectory, device: str, new: ResolvedRecipe | None
) -> tuple[Path, dict[str, float]]:
    """Run in a folder, of which a new one first gets its recipe."""
    from celstack.errors import ProcessLostError, RecoverableError
    from celstack.signals import Terminated, sigterm_as_interrupt
    from celstack.training.distributed.launcher import is_main_process
    from celstack.training.failures import classify_failure
    from celstack.training.loop import run

    folder = directory.folder
    try:
        with sigterm_as_interrupt():
            if new is not None and is_main_process():
                directory.save_recipe(new)
            return folder, run(assembly, directory, device, new is None).scores
    except Terminated:
        raise Terminated(f"stopped by SIGTERM; {_way_on(folder, device)}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_way_on(folder, device)}") from None
    except ProcessLostError as error:
        text = f"{error}; {_way_on(folder, device)}"
        raise ProcessLostError(text, error.rank_local) from error
    except (OSError, EOFError, MemoryError, RuntimeError, RecoverableError) as error:
        told = classify_failure(error, assembly)
        if told is None:
            raise  # a fault of ours, or of a plugin's
        text = f"the run in {folder} failed: {told}; {_way_on(folder, device)}"
        mishap = RecoverableError(text)
        mishap.rank_local = True
        raise mishap from error


def _way_on(folder: Path, device: str) -> str:
    """Say what is kept, and the command that goes on with it."""
    from celstack.training.distributed.launcher import LAUNCHER_PID

    if not folder.is_dir():
        return "the folder is gone, and what was learned with it"
    if not (folder / "resolved.toml").is_file():
        return "nothing was learned yet"
    kept = (folder / "checkpoint.pt").is_file()
    words = ["run-recipe", "--resume", str(folder)]
    words += [] if device == "auto" else ["--device", device]
    words += ["--devices", os.environ["WORLD_SIZE"]] if LAUNCHER_PID in os.environ else []
    command = shlex.join(words)
    if kept:
        return f"what was learned is kept, and this goes on: {command}"
    return f"nothing was learned yet, and this starts again: {command}"

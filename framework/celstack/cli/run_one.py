"""Start or resume one run; if it is stopped or fails, the message says how to resume."""

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


def launch_processes(arguments: argparse.Namespace) -> None:
    """Run this command in ``--devices`` processes, and exit with their code.

    Returns without doing anything for one device, and in a process that was launched so.
    """
    from celstack.errors import CelstackError
    from celstack.training.distributed.launcher import (
        DEFAULT_TIMEOUT_SECONDS,
        is_distributed,
        launch,
    )

    count, timeout = arguments.devices, arguments.timeout
    if count is not None and count < 1:
        raise CelstackError(f"--devices {count}: must be at least 1")
    if timeout is not None and not timeout > 0:
        raise CelstackError(f"--timeout {timeout}: must be more than 0 seconds")
    if not is_distributed():
        if count is not None and count > 1:
            raise SystemExit(launch(sys.argv[1:], count, timeout or DEFAULT_TIMEOUT_SECONDS))
        return
    if count not in (None, int(os.environ["WORLD_SIZE"])):
        raise CelstackError(
            f"--devices {count}: torchrun has already set the number of processes"
        )


def start_run(
    resolved: ResolvedRecipe,
    catalog: Catalog,
    out: Path,
    device: str,
    quiet: bool,
    timeout: float | None = None,
) -> tuple[Path, dict[str, float]]:
    """Run a recipe in a new run folder below ``out``; return the folder and the scores."""
    from celstack.runs.directory import RunDirectory
    from celstack.training.distributed.setup import init_process_group

    assembly = _assemble(resolved, catalog, device, quiet)
    group, made = init_process_group(device, timeout), ""
    with group.raise_on_all_ranks():
        if group.is_main:
            made = str(RunDirectory.create(out, resolved.name, assembly.seed).folder)
    folder = Path(os.fsdecode(group.broadcast_bytes(os.fsencode(made))))
    return _run(assembly, RunDirectory(folder), device, resolved)


def resume_run(
    resolved: ResolvedRecipe,
    catalog: Catalog,
    folder: Path,
    device: str,
    quiet: bool,
    timeout: float | None = None,
) -> tuple[Path, dict[str, float]]:
    """Resume the run in a folder; return the folder and the scores."""
    from celstack.runs.directory import RunDirectory
    from celstack.training.distributed.setup import init_process_group

    assembly = _assemble(resolved, catalog, device, quiet)
    init_process_group(device, timeout)
    return _run(assembly, RunDirectory(folder), device, None)


def print_summary(folder: Path, scores: dict[str, float], quiet: bool) -> None:
    """Print the scores of a run and where its results are; if quiet, only the folder."""
    from celstack.cli.output import print_line
    from celstack.training.distributed.launcher import is_main_process

    if not is_main_process():
        return
    if quiet:
        print_line(str(folder))
        return
    for name, score in scores.items():
        print_line(f"{name:>12}  {score:.4f}")
    print_line(f"Results: {folder}")
    page = folder / "report.html"
    if page.is_file():
        print_line(f"Report: {page} (open it in a browser)")
    else:
        print_line(f"Examples: {folder / 'examples.png'} (inputs, reconstructions, layers)")


def _assemble(resolved: ResolvedRecipe, catalog: Catalog, device: str, quiet: bool) -> Assembly:
    """Assemble a recipe and check device and data, before a run folder is created."""
    from celstack.data.availability import require_images
    from celstack.recipe.build import assemble
    from celstack.system import find_device

    assembly = assemble(resolved, catalog)
    find_device(device)
    require_images(assembly.dataset, assembly.batch_sizes())
    if quiet:
        printing = [observer for observer in assembly.observers if observer.terminal]
        for observer in printing:
            assembly.observers.remove(observer)
    return assembly


def _run(
    assembly: Assembly, directory: RunDirectory, device: str, new: ResolvedRecipe | None
) -> tuple[Path, dict[str, float]]:
    """Train in a run folder, to which the recipe of a new run is written first."""
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
        raise Terminated(f"Stopped by SIGTERM; {_resume_hint(folder, device)}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Interrupted; {_resume_hint(folder, device)}") from None
    except ProcessLostError as error:
        text = f"{error}; {_resume_hint(folder, device)}"
        raise ProcessLostError(text, error.rank_local) from error
    except (OSError, EOFError, MemoryError, RuntimeError, RecoverableError) as error:
        failure = classify_failure(error, assembly)
        if failure is None:
            raise  # a bug, here or in a plugin
        text = f"the run in {folder} failed: {failure}; {_resume_hint(folder, device)}"
        recoverable = RecoverableError(text)
        recoverable.rank_local = True
        raise recoverable from error


def _resume_hint(folder: Path, device: str) -> str:
    """Return whether progress was saved, and the command that resumes the run."""
    from celstack.training.distributed.launcher import LAUNCHER_PID

    if not folder.is_dir():
        return "the run folder is gone, with all progress"
    if not (folder / "resolved.toml").is_file():
        return "no progress to resume"
    words = ["run-recipe", "--resume", str(folder)]
    words += [] if device == "auto" else ["--device", device]
    words += ["--devices", os.environ["WORLD_SIZE"]] if LAUNCHER_PID in os.environ else []
    command = shlex.join(words)
    if (folder / "checkpoint.pt").is_file():
        return f"progress saved. Resume with: {command}"
    return f"no checkpoint yet. Start again with: {command}"

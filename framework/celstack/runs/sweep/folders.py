"""The folders of a sweep's runs: those that are there already, and new ones."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from celstack.errors import CelstackError
from celstack.recipe.resolved import ResolvedRecipe
from celstack.runs.directory import RunDirectory
from celstack.runs.finished import read_resolved
from celstack.runs.sweep.grid import Axis

LONGEST = 100
"""No name of a folder gets longer than about this."""


def default_folder(runs: Path, recipe: str, axes: Sequence[Axis]) -> Path:
    """Name a sweep's folder after recipe and grid: ``runs/sweep-smoke-sprites.count-seed``."""
    name = "-".join(["sweep", recipe, *(axis.path for axis in axes)])
    return runs / re.sub(r"[^\w.-]", "_", name)[:LONGEST]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make a folder and keep other sweeps out of it, or say why that cannot be."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise CelstackError(
            f"{folder}: another sweep is at work there; let it finish, or stop it first"
        ) from None
    except OSError as error:
        raise CelstackError(f"--out {folder}: cannot write there: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def find_runs(base: Path) -> dict[str, Path]:
    """Return the runs of a folder by what they are runs of; of two alike, the finished one.

    A sweep needs no other memory: however it was stopped, this is what it goes on with.
    """
    runs: dict[str, Path] = {}
    for path in sorted(base.glob("*/resolved.toml")):
        try:
            key = _key(read_resolved(path.parent))
        except CelstackError:  # damaged: it is left alone, and made anew
            continue
        if key not in runs or is_finished(path.parent):
            runs[key] = path.parent
    return runs


def identity(resolved: ResolvedRecipe) -> str:
    """Say what a run would be a run of, in the words of ``find_runs``."""
    import tomli_w

    # Through TOML and back, for that is how the others come.
    return _key(tomllib.loads(tomli_w.dumps(resolved.as_table())))


def new_run(out: Path, resolved: ResolvedRecipe) -> Path:
    """Make the folder of a run that has not begun: to resume it is to begin it."""
    directory = RunDirectory.create(out, resolved.name, resolved.root.options["seed"])
    try:
        directory.save_recipe(resolved)
    except OSError as error:
        raise CelstackError(f"--out {out}: cannot write there: {error.strerror}") from error
    return directory.folder


def is_finished(folder: Path) -> bool:
    """Tell whether a run has come to its end."""
    return (folder / "metrics.json").is_file()


def _key(table: dict[str, object]) -> str:
    return json.dumps(table, sort_keys=True, default=str)

"""The folders of a sweep's runs: find existing ones, and make new ones."""

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
from celstack.runs.finished import is_finished, read_resolved
from celstack.runs.sweep.grid import Axis

MAX_FOLDER_NAME_CHARS = 100


def default_folder(runs: Path, recipe: str, axes: Sequence[Axis]) -> Path:
    """Return a folder named after recipe and grid: ``runs/sweep-smoke-sprites.count-seed``."""
    name = "-".join(["sweep", recipe, *(axis.path for axis in axes)])
    return runs / re.sub(r"[^\w.-]", "_", name)[:MAX_FOLDER_NAME_CHARS]


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it against other sweeps."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise CelstackError(
            f"{folder}: in use by another sweep; wait for it to finish, or stop it first"
        ) from None
    except OSError as error:
        raise CelstackError(f"--out {folder}: cannot write there: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def find_runs(base: Path) -> dict[str, Path]:
    """Return the runs in a folder by their ``recipe_key``; of two alike, the finished one.

    A sweep stores no other state: however it was stopped, it resumes from these.
    """
    runs: dict[str, Path] = {}
    for path in sorted(base.glob("*/resolved.toml")):
        try:
            key = _key(read_resolved(path.parent))
        except CelstackError:  # damaged: ignored, and run again in a new folder
            continue
        if key not in runs or is_finished(path.parent):
            runs[key] = path.parent
    return runs


def recipe_key(resolved: ResolvedRecipe) -> str:
    """Return the key under which ``find_runs`` returns a run of this recipe."""
    import tomli_w

    # Through TOML and back, like the recipes of stored runs.
    return _key(tomllib.loads(tomli_w.dumps(resolved.as_table())))


def new_run(out: Path, resolved: ResolvedRecipe) -> Path:
    """Make the folder of a run that is yet to start; resuming it starts it."""
    directory = RunDirectory.create(out, resolved.name, resolved.root.options["seed"])
    try:
        directory.save_recipe(resolved)
    except OSError as error:
        raise CelstackError(f"--out {out}: cannot write there: {error.strerror}") from error
    return directory.folder


def _key(table: dict[str, object]) -> str:
    return json.dumps(table, sort_keys=True, default=str)

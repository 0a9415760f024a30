"""Finished runs, read from their folders without importing torch."""

from __future__ import annotations

import json
import math
import tomllib
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.json_checks import has_shape
from celstack.recipe.merge import Table
from celstack.text import describe_error, printable

MAX_FINAL_LOSS_STEPS = 1000
"""The final loss is the mean over the last tenth of all steps, at most over these."""
RECIPE_SHAPE = {
    "dataset": {"use": str},
    "description": str,
    "evaluation": {"split": str, "images": int},
    "published": dict[str, dict[str, float]],
    "seed": int,
    "training": dict[str, object],
}
"""The types that readers rely on in a resolved recipe."""
METADATA_SHAPE = {
    "images": int,
    "percent": list[str],
    "files": list[str],
    "failed": dict[str, str],
}
"""The types that readers rely on in ``evaluation.json``."""
FINISHING = ".finishing"
"""A file that is there from before the scores of a run are written until its observers have
been notified that it is finished."""


class FinishedRun(NamedTuple):
    """The recipe and the scores of a run."""

    folder: Path
    recipe: Table
    """The resolved recipe."""
    metrics: dict[str, float]
    """NaN where a metric had no number."""
    percent: frozenset[str]
    """The metrics that tables show in percent."""
    images: int
    """How many images the metrics were computed on."""
    files: tuple[str, ...]
    """The published files of the dataset; empty if its data is whatever lies in its root."""
    loss: float | None
    """The final reconstruction loss of training, mean over the last steps; None if unknown."""
    failed: dict[str, str] = {}
    """Why metrics have no score, by their names."""

    @property
    def name(self) -> str:
        """The name of the recipe, which is that of the parent folder."""
        return self.folder.resolve().parent.name

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.recipe.get("seed", 0))

    @property
    def split(self) -> str:
        """The split that the metrics were computed on."""
        return str(self.recipe.get("evaluation", {}).get("split", ""))

    @property
    def published(self) -> dict[str, dict[str, float]]:
        """Published scores to compare with, in percent, by method."""
        return dict(self.recipe.get("published", {}))


def check_run(folder: Path) -> None:
    """Raise a CelstackError unless ``folder`` is a run folder."""
    if not folder.exists():
        raise CelstackError(f"{folder}: there is no such folder")
    if not folder.is_dir():
        raise CelstackError(f"{folder}: is a file, not a run folder")
    if not (folder / "resolved.toml").is_file():
        runs = sorted(path.parent for path in folder.glob("*/resolved.toml"))
        hint = f"; it contains runs, the latest is {runs[-1]}" if runs else ""
        raise CelstackError(f"{folder}: not a run folder (no resolved.toml){hint}")


def is_finished(folder: Path) -> bool:
    """Return whether nothing is left to do for a run; one with scores may lack its page."""
    return (folder / "metrics.json").is_file() and not (folder / FINISHING).exists()


def read_finished(folder: Path) -> FinishedRun:
    """Read a finished run."""
    check_run(folder)
    if not (folder / "metrics.json").is_file():
        raise CelstackError(
            f"{folder}: not finished (no metrics.json); resume it with "
            f"'run-recipe --resume {folder}', or score its last checkpoint with "
            f"'celstack evaluate {folder}'"
        )
    recipe = read_resolved(folder)
    path = folder / "evaluation.json"
    metadata = _read_metadata(path) if path.is_file() else {}
    published = {metric for known in recipe.get("published", {}).values() for metric in known}
    return FinishedRun(
        folder=folder,
        recipe=recipe,
        metrics=_read_metrics(folder / "metrics.json"),
        # Published scores are always in percent.
        percent=frozenset(metadata.get("percent", ())) | published,
        images=metadata.get("images", recipe.get("evaluation", {}).get("images", 0)),
        files=tuple(metadata.get("files", ())),
        loss=final_loss(folder / "log.jsonl"),
        failed=dict(metadata.get("failed", {})),
    )


def read_resolved(folder: Path) -> Table:
    """Read the resolved recipe of a run."""
    path = folder / "resolved.toml"
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)}") from error
    if not isinstance(recipe.get("dataset"), dict) or "use" not in recipe["dataset"]:
        raise CelstackError(f"{path}: is damaged: it names no dataset")
    _check(path, recipe, RECIPE_SHAPE)
    return recipe


def read_recipe_json(folder: Path) -> str:
    """Return the resolved recipe of a run as JSON; empty if the run has no recipe."""
    if not (folder / "resolved.toml").is_file():
        return ""
    return json.dumps(read_resolved(folder), default=str)


def read_evaluation_settings(path: Path) -> Any:
    """Return the settings of a stored evaluation; None if the file is not an evaluation."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["settings"]
    except (ValueError, TypeError, KeyError):
        return None


def final_loss(log: Path) -> float | None:
    """Return the mean reconstruction loss of the last steps; None if the log has none."""
    try:
        with log.open(encoding="utf-8") as lines:
            # Any number of other lines may stand between those of steps, such as validations.
            losses_only = (line for line in lines if '"reconstruction"' in line)
            last = deque(losses_only, maxlen=MAX_FINAL_LOSS_STEPS)
        steps = [step for step in map(json.loads, last) if "reconstruction" in step]
        count = min(MAX_FINAL_LOSS_STEPS, max(1, steps[-1]["step"] // 10))
        losses = [float(step["reconstruction"]) for step in steps[-count:]]
        return sum(losses) / len(losses)
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _read_metadata(path: Path) -> dict[str, Any]:
    found = _read_json(path)
    _check(path, found, METADATA_SHAPE)
    return found


def _check(path: Path, found: Table, shapes: dict[str, Any]) -> None:
    for key, shape in shapes.items():
        if key in found and not has_shape(found[key], shape):
            raise CelstackError(f"{path}: is damaged: {key} has the wrong type")


def _read_metrics(path: Path) -> dict[str, float]:
    found = _read_json(path)
    odd = [name for name, value in found.items() if not has_shape(value, float | None)]
    if odd:
        raise CelstackError(f"{path}: is damaged: {printable(odd[0])} is not a number")
    return {name: math.nan if value is None else float(value) for name, value in found.items()}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)}") from error
    if not isinstance(found, dict):
        raise CelstackError(f"{path}: is damaged: not a JSON object")
    return found

"""A finished run, read from its folder alone and without torch."""

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

LAST_STEPS = 1000
"""A final loss is the mean over the last tenth of all steps, but not over more than these."""
RECIPE = {
    "dataset": {"use": str},
    "description": str,
    "evaluation": {"split": str, "images": int},
    "published": dict[str, dict[str, float]],
    "seed": int,
    "training": dict[str, object],
}
"""What readers count on in a resolved recipe."""
ABOUT = {"images": int, "percent": list[str], "files": list[str]}
"""Likewise, in what a run was judged on."""


class FinishedRun(NamedTuple):
    """What a run was, and how well it did."""

    folder: Path
    recipe: Table
    """The resolved recipe."""
    metrics: dict[str, float]
    """As stored, NaN where a metric had no number."""
    percent: frozenset[str]
    """The metrics of which 1 is all."""
    images: int
    """How many images the metrics are for."""
    files: tuple[str, ...]
    """The published files of the dataset; none where ``root`` is the data itself."""
    loss: float | None
    """The final reconstruction loss of training, mean over the last steps; None if unknown."""

    @property
    def name(self) -> str:
        """Name the recipe, after which the folder above is called."""
        return self.folder.resolve().parent.name

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.recipe.get("seed", 0))

    @property
    def split(self) -> str:
        """The split that the metrics are for."""
        return str(self.recipe.get("evaluation", {}).get("split", ""))

    @property
    def published(self) -> dict[str, dict[str, float]]:
        """Figures to compare with, in percent."""
        return dict(self.recipe.get("published", {}))


def check_run(folder: Path) -> None:
    """Refuse what is not the folder of a run, and say what would be."""
    if not folder.exists():
        raise CelstackError(f"{folder}: there is no such folder")
    if not folder.is_dir():
        raise CelstackError(f"{folder}: is a file, not the folder of a run")
    if not (folder / "resolved.toml").is_file():
        runs = sorted(path.parent for path in folder.glob("*/resolved.toml"))
        hint = f"; it holds runs, the last of which is {runs[-1]}" if runs else ""
        raise CelstackError(f"{folder}: is not a run, for it has no resolved.toml{hint}")


def read_finished(folder: Path) -> FinishedRun:
    """Read a finished run, or say what is missing."""
    check_run(folder)
    if not (folder / "metrics.json").is_file():
        raise CelstackError(
            f"{folder}: is not finished, for it has no metrics.json; "
            f"'run-recipe --resume {folder}' goes on with it, and "
            f"'celstack evaluate {folder}' scores its last checkpoint"
        )
    recipe = read_resolved(folder)
    judged = folder / "evaluation.json"
    about = _read_about(judged) if judged.is_file() else {}
    figures = {metric for known in recipe.get("published", {}).values() for metric in known}
    return FinishedRun(
        folder=folder,
        recipe=recipe,
        metrics=_read_metrics(folder / "metrics.json"),
        # Figures to compare with are in percent, whatever else is known.
        percent=frozenset(about.get("percent", ())) | figures,
        images=about.get("images", recipe.get("evaluation", {}).get("images", 0)),
        files=tuple(about.get("files", ())),
        loss=final_loss(folder / "log.jsonl"),
    )


def read_resolved(folder: Path) -> Table:
    """Read the resolved recipe of a run."""
    path = folder / "resolved.toml"
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)}") from error
    if not isinstance(recipe.get("dataset"), dict) or "use" not in recipe["dataset"]:
        raise CelstackError(f"{path}: is damaged: it does not say which dataset to use")
    _check(path, recipe, RECIPE)
    return recipe


def final_loss(log: Path) -> float | None:
    """Return the mean reconstruction loss of the last steps; None if there is no such log."""
    try:
        with log.open(encoding="utf-8") as lines:
            # Steps have few lines besides their own: that a stage begins, that sprites do.
            last = deque(lines, maxlen=2 * LAST_STEPS)
        steps = [step for step in map(json.loads, last) if "reconstruction" in step]
        count = min(LAST_STEPS, max(1, steps[-1]["step"] // 10))
        losses = [float(step["reconstruction"]) for step in steps[-count:]]
        return sum(losses) / len(losses)
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _read_about(path: Path) -> dict[str, Any]:
    found = _read_json(path)
    _check(path, found, ABOUT)
    return found


def _check(path: Path, found: Table, shapes: dict[str, Any]) -> None:
    for key, shape in shapes.items():
        if key in found and not has_shape(found[key], shape):
            raise CelstackError(f"{path}: is damaged: {key} makes no sense")


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
        raise CelstackError(f"{path}: is damaged: it is not a table")
    return found

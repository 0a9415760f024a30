"""Information about a run: its recipe, environment and cost."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from celstack.report.training_log import TrainingLog
from celstack.text import format_duration


class RunInfo(NamedTuple):
    """Recipe, environment and cost of a run, as far as its folder has them."""

    name: str
    description: str
    seed: int
    recipe: str
    """The text of the resolved recipe."""
    machine: dict[str, str]
    cost: dict[str, str]


def read_run_info(folder: Path, log: TrainingLog) -> RunInfo:
    """Read a run folder; missing or damaged files are skipped."""
    recipe = _read(folder / "resolved.toml")
    table = _parse(recipe)
    environment = _table(_read(folder / "environment.json"))
    return RunInfo(
        name=folder.resolve().parent.name,
        description=str(table.get("description", "")),
        seed=int(table.get("seed", 0)),
        recipe=recipe,
        machine=_machine(environment),
        cost=_cost(log, table, environment.get("cores")),
    )


def _machine(environment: dict[str, Any]) -> dict[str, str]:
    packages = environment.get("packages")
    command = environment.get("command")
    entries = {
        "system": environment.get("platform"),
        "cores": environment.get("cores"),
        "Python": environment.get("python"),
        **(packages if isinstance(packages, dict) else {}),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
    }
    return {key: str(value) for key, value in entries.items() if value is not None}


def _cost(log: TrainingLog, table: dict[str, Any], cores: Any) -> dict[str, str]:
    cost = {"steps": f"{log.steps:,}"}
    if log.ended:
        cost["steps"] += f"; training ended early: {log.ended}"
    batch = table.get("training", {}).get("batch_size")
    if isinstance(batch, int):
        cost["training images"] = f"{log.steps * batch:,}, in batches of {batch}"
    if log.seconds and log.steps:
        cost["training time"] = format_duration(log.seconds)
        if isinstance(batch, int):
            cost["images per second"] = f"{log.steps * batch / log.seconds:,.0f}"
        cost["time per step"] = f"{1000 * log.seconds / log.steps:,.0f} ms"
        if isinstance(cores, int):
            cost["cost"] = f"{cores * log.seconds / 3600:.2g} core hours at most"
    return cost


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):  # runs of 0.1.0 that were assembled in Python
        return ""


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError:
        return {}


def _table(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

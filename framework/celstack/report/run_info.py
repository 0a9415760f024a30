"""The facts of a run: its recipe, the machine it ran on, what it took."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from celstack.report.training_log import History
from celstack.text import format_duration


class Facts(NamedTuple):
    """What a run was, as far as its folder tells."""

    name: str
    description: str
    seed: int
    recipe: str
    """The resolved recipe, as written."""
    machine: dict[str, str]
    cost: dict[str, str]


def read_facts(folder: Path, history: History) -> Facts:
    """Read the facts of a run; what is not there is left out."""
    recipe = _read(folder / "resolved.toml")
    table = _parse(recipe)
    environment = _table(_read(folder / "environment.json"))
    return Facts(
        name=folder.resolve().parent.name,
        description=str(table.get("description", "")),
        seed=int(table.get("seed", 0)),
        recipe=recipe,
        machine=_machine(environment),
        cost=_cost(history, table, environment.get("cores")),
    )


def _machine(environment: dict[str, Any]) -> dict[str, str]:
    packages = environment.get("packages")
    command = environment.get("command")
    said = {
        "system": environment.get("platform"),
        "cores": environment.get("cores"),
        "Python": environment.get("python"),
        **(packages if isinstance(packages, dict) else {}),
        "command": " ".join(map(str, command)) if isinstance(command, list) else None,
    }
    return {key: str(value) for key, value in said.items() if value is not None}


def _cost(history: History, table: dict[str, Any], cores: Any) -> dict[str, str]:
    cost = {"steps": f"{history.steps:,}"}
    batch = table.get("training", {}).get("batch_size")
    if isinstance(batch, int):
        cost["images looked at"] = f"{history.steps * batch:,}, {batch} at a time"
    if history.seconds and history.steps:
        cost["time of training"] = format_duration(history.seconds)
        if isinstance(batch, int):
            cost["images a second"] = f"{history.steps * batch / history.seconds:,.0f}"
        cost["time of a step"] = f"{1000 * history.seconds / history.steps:,.0f} ms"
        if isinstance(cores, int):
            cost["cost"] = f"{cores * history.seconds / 3600:.2g} core hours at most"
    return cost


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):  # A run that was assembled in Python has no recipe.
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

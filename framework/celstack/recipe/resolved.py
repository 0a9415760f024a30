"""A resolved recipe: checked word by word, in which every option has its value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A table of the recipe that has been checked: a part, or settings of the core."""

    place: str
    kind: str
    """The part's kind, or the name of the settings."""
    use: str
    """The plugin's name; empty for settings."""
    options: dict[str, Any]

    def as_table(self) -> dict[str, Any]:
        """Return what a recipe would say to get exactly this."""
        table = {"use": self.use} if self.use else {}
        return {**table, **_as_toml(self.options)}


class ResolvedRecipe(NamedTuple):
    """A recipe without mistakes."""

    name: str
    source: str
    root: Node
    text: str = ""
    """The recipe's file, as it was written."""
    chosen: Mapping[str, Any] = {}
    """What the recipe left to its images, by place."""

    def as_table(self) -> dict[str, Any]:
        """Return a recipe that says everything and extends nothing."""
        return self.root.as_table()


def _as_toml(value: Any) -> Any:
    if isinstance(value, Node):
        return value.as_table()
    if isinstance(value, list | tuple):
        return [_as_toml(item) for item in value]
    if isinstance(value, dict):
        said = {key: _as_toml(item) for key, item in value.items()}
        return {key: item for key, item in said.items() if item is not None}
    if isinstance(value, Path):
        return str(value)
    # What TOML cannot say no recipe has said: it is a default, and stays one unsaid.
    return value if isinstance(value, bool | int | float | str | date | time) else None

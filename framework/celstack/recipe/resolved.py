"""Resolved recipes: validated, with a value for every option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A validated table of a recipe: a part, or settings of the core."""

    place: str
    kind: str
    """The kind of the part, or the name of the settings class."""
    use: str
    """The plugin's name; empty for settings."""
    options: dict[str, Any]

    def as_table(self) -> dict[str, Any]:
        """Return the table as a recipe would write it, with all defaults."""
        table = {"use": self.use} if self.use else {}
        return {**table, **_as_toml(self.options)}

    def parts(self) -> Iterator[Node]:
        """Yield all parts in this table, and itself if it is one."""
        if self.use:
            yield self
        for option in self.options.values():
            for item in option if isinstance(option, list) else [option]:
                if isinstance(item, Node):
                    yield from item.parts()


class ResolvedRecipe(NamedTuple):
    """A valid recipe with all defaults filled in."""

    name: str
    source: str
    root: Node
    text: str = ""
    """The unmodified text of the recipe's file."""
    chosen: Mapping[str, Any] = {}
    """Values that were ``"auto"``, by path."""
    runnable: bool = True
    """False for an assembly made in Python that no recipe can express."""
    packages: Mapping[str, tuple[str, str]] = {}
    """Package and version of every plugin in use, by the name of its entry point."""

    def as_table(self) -> dict[str, Any]:
        """Return the full configuration as one table, which can be run again."""
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
    # Other values cannot be written in TOML: they are defaults, and are left out.
    return value if isinstance(value, bool | int | float | str | date | time) else None

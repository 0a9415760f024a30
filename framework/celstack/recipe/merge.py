"""Tables laid over one another, as ``extends`` and overrides do it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Table = dict[str, Any]
DEEPEST = 50
"""How far tables may lie inside one another; farther is a mistake or mischief."""


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Table:
    """Lay one table over another; lists are replaced, and so is a part by another part."""
    if "use" in above and "use" in below and above["use"] != below["use"]:
        return dict(above)
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        # "greedy" over a table with a 'use' is short for a table, too.
        if isinstance(value, str) and isinstance(old, Mapping) and "use" in old:
            value = as_table(value)
        merged[key] = merge(as_table(old), value) if isinstance(value, Mapping) else value
    return merged


def as_table(value: Any) -> Table:
    """Read ``selector = "greedy"`` as the table it is short for; of all else, make none."""
    if isinstance(value, str):
        return {"use": value}
    return dict(value) if isinstance(value, Mapping) else {}


def too_deep(table: Table) -> bool:
    """Tell whether tables and lists lie more than DEEPEST inside one another."""
    level: list[Any] = [table]
    for _ in range(DEEPEST):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)

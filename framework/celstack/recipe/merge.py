"""Merge tables, as ``extends`` and overrides do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Table = dict[str, Any]
MAX_DEPTH = 50
"""The maximum nesting of tables."""


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Table:
    """Merge tables recursively; lists, and tables with another ``use``, are replaced."""
    if "use" in above and "use" in below and above["use"] != below["use"]:
        return dict(above)
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        # "greedy" is short for {use = "greedy"} where the other value is such a table.
        if isinstance(value, str) and isinstance(old, Mapping) and "use" in old:
            value = as_table(value)
        merged[key] = merge(as_table(old), value) if isinstance(value, Mapping) else value
    return merged


def as_table(value: Any) -> Table:
    """Expand ``selector = "greedy"`` to its table; return an empty table for other values."""
    if isinstance(value, str):
        return {"use": value}
    return dict(value) if isinstance(value, Mapping) else {}


def too_deep(table: Table) -> bool:
    """Return whether tables and lists are nested more than MAX_DEPTH deep."""
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
    return bool(level)

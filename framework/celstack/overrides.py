"""Overrides: ``--set path=value`` changes one value of a recipe."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple

from celstack.errors import CelstackError, spelt
from celstack.tables import DEEPEST, Table, as_table, merge, too_deep

PATH = re.compile(r"\s*[\w-]+(\.[\w-]+|\[\d+\])*\s*", re.ASCII)
PIECE = re.compile(r"[\w-]+", re.ASCII)


class Override(NamedTuple):
    """A value and its place: keys of tables and indices of lists."""

    keys: list[str | int]
    value: Any


def override(table: Table, texts: Iterable[str]) -> None:
    """Change a table in place, as ``path=value`` texts say; their order does not matter."""
    overrides = [_parse(text) for text in texts]
    # Whole tables come before what is in them, and a new 'use' starts its table afresh.
    for keys, value in sorted(overrides, key=lambda o: (len(o.keys), o.keys[-1] != "use")):
        _change(table, keys, value)
    if too_deep(table):
        raise CelstackError(f"--set: makes tables more than {DEEPEST} deep")


def _parse(text: str) -> Override:
    path, equals, value = text.partition("=")
    if not equals or not PATH.fullmatch(path):
        raise CelstackError(
            f"--set {text}: write path=value, as in selector.sweeps=3 "
            "or transforms.layer[0].use=color"
        )
    if path.strip() == "extends":
        raise CelstackError(f"--set {text}: what a recipe extends cannot be changed from here")
    # An index of ten digits is no index of anything.
    keys = [int(p) if p.isdigit() and len(p) < 10 else p for p in PIECE.findall(path)]
    if len(keys) > DEEPEST:
        raise CelstackError(f"--set {path[:20]}...: more than {DEEPEST} tables deep")
    return Override(keys, _parse_value(text, value.strip()))


def _parse_value(text: str, value: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {value}")
        if set(parsed) == {"value"}:
            return parsed["value"]
    except (ValueError, RecursionError):
        pass
    # A bare word is a string: nobody wants to quote quotes for the shell.
    if value and value[0] not in "[{\"'" and "\n" not in value:
        return value
    raise CelstackError(f"--set {text}: what follows '=' is not a value of TOML")


def _change(table: Table, keys: list[str | int], value: Any) -> None:
    at: Any = table
    for depth in range(1, len(keys)):
        at = _step_into(at, keys[:depth])
    last = keys[-1]
    if isinstance(at, dict) and isinstance(last, str):
        merged = merge(at, {last: value})
        at.clear()
        at.update(merged)
    else:
        _step_into(at, keys)
        at[last] = value


def _step_into(at: Any, keys: list[str | int]) -> Any:
    key, above = keys[-1], keys[:-1]
    if isinstance(at, dict) and isinstance(key, str):
        at.setdefault(key, {})
    elif not isinstance(at, list) or not isinstance(key, int):
        needed = "list" if isinstance(key, int) else "table"
        what = _spell(above) or "the recipe"
        raise CelstackError(f"--set {_spell(keys)}: {what} is not a {needed}")
    elif key >= len(at):
        raise CelstackError(
            f"--set {_spell(keys)}: {_spell(above)} has only {len(at)} items, counted from 0"
        )
    if isinstance(at[key], str):
        at[key] = as_table(at[key])
    return at[key]


def _spell(keys: list[str | int]) -> str:
    parts = (f"[{key}]" if isinstance(key, int) else f".{spelt(key)}" for key in keys)
    return "".join(parts).removeprefix(".")

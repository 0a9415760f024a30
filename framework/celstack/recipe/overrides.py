"""Overrides: ``--set path=value`` changes one value of a recipe."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.keypath import format_path
from celstack.recipe.merge import MAX_DEPTH, Table, as_table, merge, too_deep
from celstack.text import is_unicode, printable

PATH = re.compile(r"\s*[\w-]+(\.[\w-]+|\[\d+\])*\s*", re.ASCII)
PIECE = re.compile(r"[\w-]+", re.ASCII)


class Override(NamedTuple):
    """A value and its place: keys of tables and indices of lists."""

    keys: list[str | int]
    value: Any
    option: str = "--set"
    """The command-line option that it came from, for messages."""

    @property
    def path(self) -> str:
        """Format the path, as in ``transforms.layer[0].use``."""
        return format_path(self.keys)


def override(table: Table, changes: Iterable[str | Override]) -> None:
    """Apply ``path=value`` overrides to a table in place, in any order."""
    overrides = [parse(one) if isinstance(one, str) else one for one in changes]
    # Whole tables come before what is in them, and a new 'use' starts its table afresh.
    for one in sorted(overrides, key=lambda o: (len(o.keys), o.keys[-1] != "use")):
        _change(table, one)
    if too_deep(table):
        raise CelstackError(f"--set: makes tables more than {MAX_DEPTH} deep")


def parse(text: str, option: str = "--set") -> Override:
    """Parse ``path=value``, or raise CelstackError."""
    said = f"{option} {printable(text)}"
    if not is_unicode(text):
        raise CelstackError(f"{said}: not text in UTF-8")
    path, equals, value = text.partition("=")
    keys = parse_path(path if equals else "", said)
    return Override(keys, parse_value(value.strip(), said), option)


def parse_path(path: str, said: str) -> list[str | int]:
    """Parse ``transforms.layer[0].use``, or raise CelstackError; errors quote ``said``."""
    if not PATH.fullmatch(path):
        raise CelstackError(
            f"{said}: write path=value, as in selector.sweeps=3 "
            "or transforms.layer[0].use=color"
        )
    if path.strip() == "extends":
        raise CelstackError(f"{said}: 'extends' cannot be overridden")
    # Numbers of ten digits or more are keys, not indices.
    keys = [int(p) if p.isdigit() and len(p) < 10 else p for p in PIECE.findall(path)]
    if len(keys) > MAX_DEPTH:
        raise CelstackError(f"{said[:30]}...: more than {MAX_DEPTH} tables deep")
    return keys


def parse_value(value: str, said: str) -> Any:
    """Parse a TOML value, or take a bare word as a string; ``said`` is quoted in errors."""
    try:
        parsed = tomllib.loads(f"value = {value}")
        if set(parsed) == {"value"}:
            return parsed["value"]
    except (ValueError, RecursionError):
        pass
    # A bare word is a string: nobody wants to quote quotes for the shell.
    if value and value[0] not in "[{\"'" and "\n" not in value:
        return value
    raise CelstackError(f"{said}: what follows '=' is not a value of TOML")


def _change(table: Table, change: Override) -> None:
    at: Any = table
    keys, value, option = change
    for depth in range(1, len(keys)):
        at = _step_into(at, keys[:depth], option)
    last = keys[-1]
    if isinstance(at, dict) and isinstance(last, str):
        merged = merge(at, {last: value})
        at.clear()
        at.update(merged)
    else:
        _step_into(at, keys, option)
        at[last] = value


def _step_into(at: Any, keys: list[str | int], option: str) -> Any:
    key, above = keys[-1], keys[:-1]
    if isinstance(at, dict) and isinstance(key, str):
        at.setdefault(key, {})
    elif not isinstance(at, list) or not isinstance(key, int):
        needed = "list" if isinstance(key, int) else "table"
        what = format_path(above) or "the recipe"
        raise CelstackError(f"{option} {format_path(keys)}: {what} is not a {needed}")
    elif key >= len(at):
        raise CelstackError(
            f"{option} {format_path(keys)}: {format_path(above)} has only {len(at)} items, "
            "counted from 0"
        )
    if isinstance(at[key], str):
        at[key] = as_table(at[key])
    return at[key]

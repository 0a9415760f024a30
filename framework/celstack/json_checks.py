"""Validate JSON: as a whole against a type, or value by value with one-line errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from celstack.errors import CelstackError
from celstack.text import did_you_mean, format_value

MAX_NUMBER = 1e100
"""Larger numbers are rejected, because sums of them overflow."""


def parse(text: str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no duplicate keys."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except RecursionError:
        raise CelstackError("cannot be read as JSON: nested too deeply") from None
    except ValueError as error:
        raise CelstackError(f"is not JSON: {' '.join(str(error).split())[:200]}") from None


def check_keys(value: Any, known: Iterable[str], place: str) -> dict[str, Any]:
    """Check that a value is a table with exactly the known keys, and return it."""
    where, known = f"{place}: " if place else "", list(known)
    if not isinstance(value, dict):
        wanted = f"a table of {', '.join(known)}" if known else "an empty table"
        raise CelstackError(f"{where}must be {wanted}, not {format_json(value)}")
    for key in value:
        if key not in known:
            raise CelstackError(
                f"{where}unknown key {format_json(key)}{did_you_mean(key, known)}"
            )
    for key in known:
        if key not in value:
            raise CelstackError(f"{where}{key} is missing")
    return value


def check_list(value: Any, count: int, place: str) -> list[Any]:
    """Check that a value is a list of ``count`` items, and return it."""
    if not isinstance(value, list):
        raise CelstackError(f"{place}: must be a list of {count}, not {format_json(value)}")
    if len(value) != count:
        raise CelstackError(f"{place}: must be a list of {count}, not of {len(value)}")
    return value


def check_index(value: Any, count: int, place: str) -> int:
    """Check that a value is an index below ``count``, and return it."""
    if type(value) is not int or not 0 <= value < count:
        raise CelstackError(
            f"{place}: must be one of 0 to {count - 1}, not {format_json(value)}"
        )
    return value


def check_numbers(value: Any, count: int, low: float, high: float, place: str) -> list[float]:
    """Check that a value is a list of ``count`` numbers from low to high, and return it."""
    for index, number in enumerate(check_list(value, count, place)):
        if type(number) not in (int, float) or not low <= number <= high:
            wanted = f"a number from {low:g} to {high:g}"
            raise CelstackError(
                f"{place}[{index}]: must be {wanted}, not {format_json(number)}"
            )
    return [float(number) for number in value]


def format_json(value: Any) -> str:
    """Format a JSON value in one line of at most 60 characters."""
    return "null" if value is None else format_value(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in keys if keys.count(key) > 1)
        raise CelstackError(f"duplicate key {format_json(duplicate)}")
    return table


def _constant(name: str) -> float:
    raise CelstackError(f"{name} is not a number in JSON")


def has_shape(value: Any, shape: Any) -> bool:
    """Return whether a JSON value has a type such as ``dict[str, list[int]]``.

    Bools are not numbers, nor are NaN, infinities and numbers beyond ``MAX_NUMBER``.

    Args:
        value: What ``json.loads`` returned.
        shape: A type, a union, or a mapping from keys to types; such a mapping accepts
            tables whose values under these keys, where present, have these types.
    """
    if isinstance(shape, Mapping):
        kinds = ((value[key], kind) for key, kind in shape.items() if key in value)
        return isinstance(value, dict) and all(has_shape(*pair) for pair in kinds)
    if isinstance(shape, UnionType):
        return any(has_shape(value, choice) for choice in get_args(shape))
    inner = get_args(shape)
    if get_origin(shape) is list:
        return isinstance(value, list) and all(has_shape(one, inner[0]) for one in value)
    if get_origin(shape) is dict:
        items = value.values() if isinstance(value, dict) else ()
        return isinstance(value, dict) and all(has_shape(one, inner[1]) for one in items)
    if shape in (int, float):
        known = (int,) if shape is int else (int, float)
        return type(value) in known and -MAX_NUMBER < value < MAX_NUMBER
    return isinstance(value, shape or NoneType)

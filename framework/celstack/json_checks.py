"""Checks of JSON: of its shape as a whole, or piece by piece with each mistake in a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from celstack.errors import CelstackError
from celstack.text import did_you_mean
from celstack.text import shown as shown_as_python

MAX_NUMBER = 1e100
"""Beyond, sums are no longer numbers."""


def parse(text: str) -> Any:
    """Read JSON without what Python adds to it: no NaN, no infinity, no key twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except RecursionError:
        raise CelstackError("is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise CelstackError(f"is not JSON: {' '.join(str(error).split())[:200]}") from None


def check_keys(value: Any, known: Iterable[str], place: str) -> dict[str, Any]:
    """Return a table that has all the known keys and no others."""
    where, known = f"{place}: " if place else "", list(known)
    if not isinstance(value, dict):
        wanted = f"a table of {', '.join(known)}" if known else "an empty table"
        raise CelstackError(f"{where}must be {wanted}, not {shown(value)}")
    for key in value:
        if key not in known:
            raise CelstackError(f"{where}there is no {shown(key)}{did_you_mean(key, known)}")
    for key in known:
        if key not in value:
            raise CelstackError(f"{where}{key} is missing")
    return value


def check_list(value: Any, count: int, place: str) -> list[Any]:
    """Return a list of so many items."""
    if not isinstance(value, list):
        raise CelstackError(f"{place}: must be a list of {count}, not {shown(value)}")
    if len(value) != count:
        raise CelstackError(f"{place}: must be a list of {count}, not of {len(value)}")
    return value


def check_index(value: Any, count: int, place: str) -> int:
    """Return a number of one of so many things, counted from 0."""
    if type(value) is not int or not 0 <= value < count:
        raise CelstackError(f"{place}: must be one of 0 to {count - 1}, not {shown(value)}")
    return value


def check_numbers(value: Any, count: int, low: float, high: float, place: str) -> list[float]:
    """Return a list of so many numbers, none of them out of range."""
    for index, number in enumerate(check_list(value, count, place)):
        if type(number) not in (int, float) or not low <= number <= high:
            wanted = f"a number from {low:g} to {high:g}"
            raise CelstackError(f"{place}[{index}]: must be {wanted}, not {shown(number)}")
    return [float(number) for number in value]


def shown(value: Any) -> str:
    """Show a value in a few words of one line."""
    return "null" if value is None else shown_as_python(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CelstackError(f"{shown(twice)} is there twice")
    return table


def _constant(name: str) -> float:
    raise CelstackError(f"{name} is not a number that JSON has")


def has_shape(value: Any, shape: Any) -> bool:
    """Tell whether a value is, say, a ``dict[str, list[int]]``; bools are no numbers.

    A number is one that can be counted with: not infinite, and not far beyond all else. A
    mapping of names to shapes says what a table has under these names, if anything.
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

"""Convert values of recipes and calls to annotated types, or say what is accepted.

Supported annotations are those that options need: bool, int, float, str, Path, None,
Any, Literal, tuple, list, dict, unions of these, and Annotated with annotated-types bounds.
For any other class, the value must be an instance.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from celstack.keypath import format_step
from celstack.registry.kinds import KIND_OF_INTERFACE
from celstack.text import format_value

NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    Path: "a path",
    NoneType: "nothing",
    dict: "a table",
    list: "a list",
    tuple: "a list",
}
BOUNDS = {
    "ge": ("at least", lambda value, bound: value >= bound),
    "gt": ("more than", lambda value, bound: value > bound),
    "le": ("at most", lambda value, bound: value <= bound),
    "lt": ("less than", lambda value, bound: value < bound),
}
MAX_INTEGER = 2**63 - 1
"""TOML guarantees 64-bit integers."""


class CoercionError(ValueError):
    """A value of the wrong type or range, the path inside of it, and what is accepted."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(text)
        self.place = place
        self.text = text


def coerce(value: Any, annotation: Any) -> Any:
    """Convert a value to the annotated type, or raise CoercionError."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return value
    if origin is Annotated:
        return _coerce_bounds(coerce(value, arguments[0]), annotation)
    if origin in (Union, UnionType):
        return _coerce_any(value, annotation)
    if origin is Literal:
        # 1 == True in Python, but not in a recipe.
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
        raise _error(value, annotation)
    if origin is dict and isinstance(value, dict):
        inner = arguments[1]
        return {k: _coerce_inside(format_step(str(k)), v, inner) for k, v in value.items()}
    if origin in (list, tuple) and isinstance(value, list | tuple):
        return _coerce_items(value, annotation)
    return _coerce_plain(value, origin or annotation, annotation)


def describe(annotation: Any) -> str:
    """Describe an annotation in words: 'an integer of at least 1'."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = " and ".join(f"{BOUNDS[key][0]} {bound}" for key, bound in _bounds(annotation))
        return describe(arguments[0]) + (f" of {bounds}" if bounds else "")
    if origin in (Union, UnionType):
        # In a recipe, None is a missing key.
        return " or ".join(describe(choice) for choice in arguments if choice is not NoneType)
    if origin is Literal:
        return " or ".join(map(format_value, arguments))
    if origin is tuple and Ellipsis not in arguments:
        items = list(map(describe, arguments))
        alike = f"each {items[0]}" if len(set(items)) == 1 else ", ".join(items)
        return f"a list of {len(items)}, {alike}"
    if origin in (list, tuple):
        return f"a list, each {describe(arguments[0])}"
    if origin is dict:
        return f"a table, each value {describe(arguments[1])}"
    name = str(getattr(annotation, "__name__", annotation))
    kind = KIND_OF_INTERFACE.get(name)
    return NAMES.get(annotation) or (kind.title if kind else name)


def _coerce_plain(value: Any, plain: Any, annotation: Any) -> Any:
    if plain is Path and isinstance(value, str | Path):
        return Path(value)
    if plain is tuple and isinstance(value, list):
        return tuple(value)
    if plain is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _coerce_number(value)
    if plain is int and not isinstance(value, int) and hasattr(value, "__index__"):
        value = value.__index__()  # numpy's integers
    # In Python a bool is an int; in a recipe it is not.
    if isinstance(value, bool) and plain in (int, float):
        raise _error(value, annotation)
    if plain is int and isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise CoercionError("", f"must be an integer of at most {MAX_INTEGER}")
    # Other annotations, such as a TypeVar, are not checked.
    if not isinstance(plain, type) or isinstance(value, plain):
        return value
    raise _error(value, annotation)


def _coerce_number(value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return number
    raise CoercionError("", f"must be a finite number, not {format_value(value)}")


def _coerce_any(value: Any, annotation: Any) -> Any:
    inner: CoercionError | None = None
    for choice in get_args(annotation):
        try:
            return coerce(value, choice)
        except CoercionError as error:
            # An error inside of a list is more specific than 'not any of these'.
            inner = error if error.place else inner
    raise inner or _error(value, annotation)


def _coerce_items(value: Any, annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple and Ellipsis not in arguments:
        if len(value) != len(arguments):
            raise _error(value, annotation)
    else:
        arguments = (arguments[0],) * len(value)
    items = enumerate(zip(value, arguments, strict=True))
    return origin(
        _coerce_inside(format_step(index), item, inner) for index, (item, inner) in items
    )


def _coerce_inside(place: str, value: Any, annotation: Any) -> Any:
    try:
        return coerce(value, annotation)
    except CoercionError as error:
        raise CoercionError(place + error.place, error.text) from None


def _coerce_bounds(value: Any, annotation: Any) -> Any:
    for key, bound in _bounds(annotation):
        if not BOUNDS[key][1](value, bound):
            raise _error(value, annotation)
    return value


def _bounds(annotation: Any) -> list[tuple[str, Any]]:
    """List the bounds of annotated-types, or of objects with the same attributes."""
    return [
        (key, getattr(constraint, key))
        for constraint in get_args(annotation)[1:]
        for key in BOUNDS
        if getattr(constraint, key, None) is not None
    ]


def _error(value: Any, annotation: Any) -> CoercionError:
    return CoercionError("", f"must be {describe(annotation)}, not {format_value(value)}")

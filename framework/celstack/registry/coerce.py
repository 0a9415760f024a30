"""Check a value from a recipe or a call against an annotation.

The annotations understood are those an option needs: bool, int, float, str, Path, None,
Any, Literal, tuple, list, dict, unions of these, and Annotated with annotated-types bounds.
Of any other class, the value must be an instance.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from celstack.registry.kinds import KIND_OF_INTERFACE
from celstack.text import format_value, quote_key

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
LARGEST = 2**63 - 1
"""The integers that every reader of TOML understands go this far."""


class Misfit(ValueError):  # noqa: N818 - an outcome of a check, caught by those who ask
    """A value that does not fit, the place inside it, and what would fit."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(text)
        self.place = place
        self.text = text


def fit(value: Any, annotation: Any) -> Any:
    """Return the value as the annotated type, or raise Misfit."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return value
    if origin is Annotated:
        return _fit_bounds(fit(value, arguments[0]), annotation)
    if origin in (Union, UnionType):
        return _fit_any(value, annotation)
    if origin is Literal:
        # 1 == True in Python, but not in a recipe.
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
        raise _misfit(value, annotation)
    if origin is dict and isinstance(value, dict):
        inner = arguments[1]
        return {k: _fit_inside(f".{quote_key(str(k))}", v, inner) for k, v in value.items()}
    if origin in (list, tuple) and isinstance(value, list | tuple):
        return _fit_items(value, annotation)
    return _fit_plain(value, origin or annotation, annotation)


def describe(annotation: Any) -> str:
    """Name an annotation for a reader: 'an integer of at least 1'."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = " and ".join(f"{BOUNDS[key][0]} {bound}" for key, bound in _bounds(annotation))
        return describe(arguments[0]) + (f" of {bounds}" if bounds else "")
    if origin in (Union, UnionType):
        # A recipe says None by saying nothing.
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


def _fit_plain(value: Any, plain: Any, annotation: Any) -> Any:
    if plain is Path and isinstance(value, str | Path):
        return Path(value)
    if plain is tuple and isinstance(value, list):
        return tuple(value)
    if plain is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _fit_number(value)
    if plain is int and not isinstance(value, int) and hasattr(value, "__index__"):
        value = value.__index__()  # numpy's integers
    # A bool is an int to Python, but never to a reader.
    if isinstance(value, bool) and plain in (int, float):
        raise _misfit(value, annotation)
    if plain is int and isinstance(value, int) and abs(value) > LARGEST:
        raise Misfit("", f"must be an integer of at most {LARGEST}")
    # What is neither a class nor in our list, such as a TypeVar, is the part's own affair.
    if not isinstance(plain, type) or isinstance(value, plain):
        return value
    raise _misfit(value, annotation)


def _fit_number(value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return number
    raise Misfit("", f"must be a finite number, not {format_value(value)}")


def _fit_any(value: Any, annotation: Any) -> Any:
    inner: Misfit | None = None
    for choice in get_args(annotation):
        try:
            return fit(value, choice)
        except Misfit as misfit:
            # 'item 2 of the list is wrong' helps more than 'not this, not that'.
            inner = misfit if misfit.place else inner
    raise inner or _misfit(value, annotation)


def _fit_items(value: Any, annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple and Ellipsis not in arguments:
        if len(value) != len(arguments):
            raise _misfit(value, annotation)
    else:
        arguments = (arguments[0],) * len(value)
    items = enumerate(zip(value, arguments, strict=True))
    return origin(_fit_inside(f"[{index}]", item, inner) for index, (item, inner) in items)


def _fit_inside(place: str, value: Any, annotation: Any) -> Any:
    try:
        return fit(value, annotation)
    except Misfit as misfit:
        raise Misfit(place + misfit.place, misfit.text) from None


def _fit_bounds(value: Any, annotation: Any) -> Any:
    for key, bound in _bounds(annotation):
        if not BOUNDS[key][1](value, bound):
            raise _misfit(value, annotation)
    return value


def _bounds(annotation: Any) -> list[tuple[str, Any]]:
    """List the bounds, of annotated-types or of whatever has the same attributes."""
    return [
        (key, getattr(constraint, key))
        for constraint in get_args(annotation)[1:]
        for key in BOUNDS
        if getattr(constraint, key, None) is not None
    ]


def _misfit(value: Any, annotation: Any) -> Misfit:
    return Misfit("", f"must be {describe(annotation)}, not {format_value(value)}")

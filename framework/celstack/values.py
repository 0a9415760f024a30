"""Check a value from a recipe or a call against an annotation.

The annotations understood are those an option needs: bool, int, float, str, Path, None,
Any, Literal, tuple, list, dict, unions of these, and Annotated with annotated-types bounds.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types

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
        return {key: _fit_inside(f".{key}", v, arguments[1]) for key, v in value.items()}
    if origin in (list, tuple) and isinstance(value, list | tuple):
        return _fit_items(value, annotation)
    return _fit_plain(value, annotation)


def describe(annotation: Any) -> str:
    """Name an annotation for a reader: 'an integer of at least 1'."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = [f"{BOUNDS[key][0]} {bound:g}" for key, bound in _bounds(annotation)]
        return f"{describe(arguments[0])} of {' and '.join(bounds)}"
    if origin in (Union, UnionType):
        return " or ".join(describe(choice) for choice in arguments)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    if origin is tuple and Ellipsis not in arguments:
        return f"a list of {len(arguments)}: {', '.join(map(describe, arguments))}"
    if origin in (list, tuple):
        return f"a list, each {describe(arguments[0])}"
    if origin is dict:
        return f"a table, each value {describe(arguments[1])}"
    return NAMES.get(annotation) or str(getattr(annotation, "__name__", annotation))


def _fit_plain(value: Any, annotation: Any) -> Any:
    if annotation is Path and isinstance(value, str | Path):
        return Path(value)
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise Misfit("", "must be a number of ordinary size") from None
        if math.isfinite(number):
            return number
        raise Misfit("", f"must be a finite number, not {value}")
    # A bool is an int to Python, but never to a reader.
    if isinstance(value, bool) != (annotation is bool):
        raise _misfit(value, annotation)
    if isinstance(annotation, type) and isinstance(value, annotation):
        return value
    raise _misfit(value, annotation)


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
    constraints = [
        c for c in get_args(annotation)[1:] if isinstance(c, annotated_types.BaseMetadata)
    ]
    return [
        (key, getattr(constraint, key))
        for constraint in constraints
        for key in BOUNDS
        if getattr(constraint, key, None) is not None
    ]


def _misfit(value: Any, annotation: Any) -> Misfit:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return Misfit("", f"must be {describe(annotation)}, not {shown}")

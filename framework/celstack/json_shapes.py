"""Whether what a file says has the shape that its readers count on."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

LARGEST = 1e100
"""Beyond, sums are no longer numbers."""


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
        return type(value) in known and -LARGEST < value < LARGEST
    return isinstance(value, shape or NoneType)

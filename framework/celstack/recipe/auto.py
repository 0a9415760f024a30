"""Auto: values that a recipe leaves to its images, chosen by the dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from celstack.keypath import format_path
from celstack.recipe.merge import Table

AUTO = "auto"
ANY_INDEX = "[]"
"""In the path of a suggestion, this stands for every item of a list."""

Keys = tuple[str | int, ...]


def find_auto(table: Table) -> list[Keys]:
    """Return the key path of every value that is ``"auto"``."""
    return list(_find(table, ()))


def fill_auto(table: Table, paths: list[Keys], suggested: Mapping[str, Any]) -> dict[str, Any]:
    """Replace ``"auto"`` in place with what is suggested for its path.

    Args:
        table: The recipe, changed in place.
        paths: Where it says ``"auto"``.
        suggested: Values by path; ``stages[].epochs`` stands for all stages.

    Returns:
        The values that were filled in, by path. Where nothing is suggested, ``"auto"`` stays,
        and is reported as a value that the option does not take.
    """
    filled = {}
    for keys in paths:
        path = format_path(keys)
        for key in (path, re.sub(r"\[\d+\]", ANY_INDEX, path)):
            if key in suggested:
                _set(table, keys, suggested[key])
                filled[path] = suggested[key]
                break
    return dict(sorted(filled.items()))


def _find(value: Any, keys: Keys) -> Iterator[Keys]:
    if value == AUTO and keys and isinstance(keys[-1], str):
        yield keys
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from _find(inner, (*keys, key))


def _set(table: Table, keys: Keys, value: Any) -> None:
    target: Any = table
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = value

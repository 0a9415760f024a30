"""Differences of recipes, and the one list of options that do not matter when comparing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from celstack.keypath import join
from celstack.recipe.merge import Table

TEXT = frozenset({"description", "published"})
"""Options that are only text or numbers to show."""
OPERATION = frozenset(
    {"observers", "training.workers", "training.checkpoint_every", "dataset.root"}
)
"""Options of how and where a run is carried out, on which nothing that it learns depends."""
SCORING = frozenset({"metrics", "evaluation"})
"""Options of how a trained model is evaluated."""
SEED = frozenset({"seed"})

MAY_CHANGE_ON_RESUME = TEXT | OPERATION | SCORING
VARY_WITHIN_EXPERIMENT = TEXT | OPERATION | SEED
"""Runs that differ only in these options are runs of the same experiment."""
SHOWN_ELSEWHERE = TEXT | SEED
"""Options that a page which compares runs shows in other places."""


class RecipeDifference(NamedTuple):
    """An option that differs; None where a recipe does not have it."""

    path: str
    before: Any
    after: Any


def recipe_differences(
    before: Any, after: Any, ignored: Collection[str] = (), path: str = ""
) -> Iterator[RecipeDifference]:
    """Yield the options in which two recipes differ, except those in ``ignored``."""
    if path in ignored or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            pair = before.get(key), after.get(key)
            yield from recipe_differences(*pair, ignored, join(path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from recipe_differences(*pair, ignored, join(path, index))
    else:
        yield RecipeDifference(path, before, after)


def without(table: Table, ignored: Collection[str], path: str = "") -> Table:
    """Return a copy of a table without the options in ``ignored``, given by their paths."""
    kept: Table = {}
    for key, value in table.items():
        inner = join(path, key)
        if inner not in ignored:
            kept[key] = without(value, ignored, inner) if isinstance(value, dict) else value
    return kept


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of a table by their paths, such as ``stages[0].steps``."""
    if isinstance(value, dict):
        items = [(join(path, key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(join(path, index), item) for index, item in enumerate(value)]
    else:
        return {path: value}
    return {key: leaf for inner, item in items for key, leaf in flatten(item, inner).items()}

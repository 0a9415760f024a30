"""Settling: what a recipe leaves to its images is chosen by looking at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from celstack.recipe.merge import Table

AUTO = "auto"


def unsettled(table: Table) -> dict[str, list[tuple[str | int, ...]]]:
    """Find all that is ``"auto"``: where it stands, by the name of the option."""
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for path, name in _autos(table, ()):
        found.setdefault(name, []).append(path)
    return found


def settle(
    table: Table, places: Mapping[str, list[tuple[str | int, ...]]], chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """Put what was chosen, by names of options, in its places; return it by places.

    What nobody chose stays: it is a mistake, and will be called one.
    """
    settled = {}
    for name in places.keys() & chosen.keys():
        for path in places[name]:
            target: Any = table
            for step in path[:-1]:
                target = target[step]
            target[path[-1]] = settled[spell(path)] = chosen[name]
    return dict(sorted(settled.items()))


def _autos(
    value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if value == AUTO and isinstance(path[-1], str):
        yield path, path[-1]
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from _autos(inner, (*path, key))


def spell(path: tuple[str | int, ...]) -> str:
    """Spell where something stands, as mistakes are told."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).lstrip(".")

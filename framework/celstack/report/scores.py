"""How well a run did: scores beside published ones, and which class became which sprite."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from celstack.errors import CelstackError
from celstack.json_checks import has_shape
from celstack.runs.comparison import MEANING, PUBLISHED, Comparison, compare
from celstack.runs.finished import read_finished
from celstack.runs.statistics import Figure
from celstack.text import describe_error

if TYPE_CHECKING:
    from celstack.interfaces.metric import Metric

MOST_CLASSES = 40
"""A table of more classes than these is for no eye: the rest is left out."""


class Line(NamedTuple):
    """One line of a table of scores."""

    cells: list[str]
    published: bool


class Scores(NamedTuple):
    """A table of scores, what its columns mean, and what to know about it."""

    heading: list[str]
    lines: list[Line]
    meanings: dict[str, str]
    notes: list[str]


class Census(NamedTuple):
    """What sprites are used for, as a run keeps it."""

    images: int = 0
    usage: list[int] = []
    unit: str = ""
    classes: list[str] = []
    counts: list[list[int]] = []
    names: list[str | None] = []


class Cell(NamedTuple):
    """How much of a class is a sprite's: a share from 0 to 1, and whether they are matched."""

    share: float
    matched: bool


class Matrix(NamedTuple):
    """Classes in rows, nothing and sprites in columns, those that belong together in order."""

    columns: list[int | None]
    """Numbers of sprites; None for no sprite."""
    rows: list[tuple[str, list[Cell]]]
    unit: str
    left_out: int


def read_scores(folder: Path, metrics: Iterable[Metric] = ()) -> Scores | None:
    """Set the scores of a run beside published ones; None as long as it has none."""
    if not all((folder / name).is_file() for name in ("metrics.json", "resolved.toml")):
        return None
    (comparison,) = compare([read_finished(folder)])
    meanings = {m.name: first_sentence(m) for m in metrics if m.name in comparison.metrics}
    table = as_scores(comparison, meanings)
    # Of a single run there is no number of runs to be told, and no mean.
    lines = [line._replace(cells=[line.cells[0], *line.cells[2:]]) for line in table.lines]
    lines[0].cells[0] = "this run"
    heading = [table.heading[0], *table.heading[2:]]
    return Scores(heading, lines, meanings, [note for note in table.notes if note != MEANING])


def as_scores(comparison: Comparison, meanings: Mapping[str, str] | None = None) -> Scores:
    """Lay a comparison out as a table."""
    lines = [Line(comparison.cells(row), row.runs == PUBLISHED) for row in comparison.rows]
    return Scores(comparison.heading(), lines, dict(meanings or {}), comparison.notes)


def first_sentence(part: object) -> str:
    """Return the first line of what a part says of itself."""
    return (inspect.getdoc(type(part)) or "").partition("\n")[0]


def read_census(folder: Path) -> Census | None:
    """Read what sprites are used for; None as long as it was not counted."""
    path = folder / "census.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not has_shape(found, get_type_hints(Census)):
            raise ValueError("its parts are not what they should be")
        census = Census(**found)
        whole = [len(row) == len(census.usage) + 1 for row in census.counts]
        sound = len(census.classes) == len(census.counts) and all(whole)
        if not (sound and len(census.names or census.usage) == len(census.usage)):
            raise ValueError("its parts do not fit together")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CelstackError(f"{path}: is damaged: {describe_error(error)}") from error
    return census


def draw_matrix(census: Census) -> Matrix | None:
    """Lay out how much of each class every sprite has; None without ground truth."""
    if not census.counts:
        return None
    order = sorted(range(len(census.classes)), key=lambda row: -sum(census.counts[row]))
    left_out = order[MOST_CLASSES:]
    kept = [row for row in range(len(census.classes)) if row not in left_out]
    sprite_of = {name: n for n, name in enumerate(census.names) if name is not None}
    matched = [sprite_of[census.classes[r]] for r in kept if census.classes[r] in sprite_of]
    others = [n for n in range(len(census.usage)) if n not in matched]
    columns = [None, *matched, *others]
    rows = []
    for row in kept:
        total, name = sum(census.counts[row]) or 1, census.classes[row]
        cells = [
            Cell(
                census.counts[row][0 if column is None else column + 1] / total,
                column is not None and sprite_of.get(name) == column,
            )
            for column in columns
        ]
        rows.append((name, cells))
    return Matrix(columns, rows, census.unit, len(left_out))


def spell_scores(folder: Path, percent: Iterable[str]) -> dict[int, str]:
    """Spell the scores of each image, by its number."""
    try:
        found = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        spelt: dict[int, list[str]] = {}
        for name, values in found.items():
            for number, value in enumerate(values):
                spelt.setdefault(number, []).extend(_spell(name, value, name in set(percent)))
        return {number: ", ".join(texts) for number, texts in spelt.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _spell(name: str, value: Any, percent: bool) -> Sequence[str]:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return []
    return [f"{name} {Figure(value).spell(percent)}{'%' if percent else ''}"]

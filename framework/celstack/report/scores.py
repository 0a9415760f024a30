"""Scores of a run beside published ones, and the matrix of classes and sprites."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from celstack.errors import CelstackError
from celstack.json_checks import has_shape
from celstack.runs.comparison import PUBLISHED, SCORE_FORMAT, Comparison, compare
from celstack.runs.finished import read_finished
from celstack.runs.statistics import MeanStd
from celstack.text import describe_error

if TYPE_CHECKING:
    from celstack.interfaces.metric import Metric

MAX_CLASSES = 40
"""The rarest classes beyond this number are left out of the matrix."""


class ScoreRow(NamedTuple):
    """A row of a table of scores."""

    cells: list[str]
    published: bool


class ScoreTable(NamedTuple):
    """A table of scores, with explanations of its columns and notes."""

    heading: list[str]
    rows: list[ScoreRow]
    meanings: dict[str, str]
    notes: list[str]


class StoredSpriteStats(NamedTuple):
    """Statistics of sprites as ``SpriteStats.to_dict`` returns them."""

    images: int = 0
    usage: list[int] = []
    unit: str = ""
    classes: list[str] = []
    counts: list[list[int]] = []
    names: list[str | None] = []


class MatrixCell(NamedTuple):
    """A sprite's share of a class, from 0 to 1, and whether they are matched."""

    share: float
    matched: bool


class Matrix(NamedTuple):
    """Classes in rows; no sprite and sprites in columns, in the order of matched classes."""

    columns: list[int | None]
    """Numbers of sprites; None for no sprite."""
    rows: list[tuple[str, list[MatrixCell]]]
    unit: str
    left_out: int


def read_scores(folder: Path, metrics: Iterable[Metric] = ()) -> ScoreTable | None:
    """Return a table of the scores of a run and published ones; None if it has none yet."""
    if not all((folder / name).is_file() for name in ("metrics.json", "resolved.toml")):
        return None
    (comparison,) = compare([read_finished(folder)])
    meanings = {m.name: first_sentence(m) for m in metrics if m.name in comparison.metrics}
    table = score_table(comparison, meanings)
    # A single run needs no column for the number of runs, and no note on means.
    rows = [row._replace(cells=[row.cells[0], *row.cells[2:]]) for row in table.rows]
    rows[0].cells[0] = "this run"
    heading = [table.heading[0], *table.heading[2:]]
    return ScoreTable(
        heading, rows, meanings, [note for note in table.notes if note != SCORE_FORMAT]
    )


def score_table(
    comparison: Comparison, meanings: Mapping[str, str] | None = None
) -> ScoreTable:
    """Convert a comparison for the templates of pages."""
    rows = [ScoreRow(comparison.cells(row), row.runs == PUBLISHED) for row in comparison.rows]
    return ScoreTable(comparison.heading(), rows, dict(meanings or {}), comparison.notes)


def first_sentence(part: object) -> str:
    """Return the first line of the docstring of a part."""
    return (inspect.getdoc(type(part)) or "").partition("\n")[0]


def read_sprite_stats(folder: Path) -> StoredSpriteStats | None:
    """Read the statistics of sprites; None if the run has none yet."""
    path = folder / "census.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not has_shape(found, get_type_hints(StoredSpriteStats)):
            raise ValueError("wrong types of values")
        stats = StoredSpriteStats(**found)
        complete = [len(row) == len(stats.usage) + 1 for row in stats.counts]
        consistent = len(stats.classes) == len(stats.counts) and all(complete)
        if not (consistent and len(stats.names or stats.usage) == len(stats.usage)):
            raise ValueError("inconsistent lengths")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CelstackError(f"{path}: is damaged: {describe_error(error)}") from error
    return stats


def class_matrix(stats: StoredSpriteStats) -> Matrix | None:
    """Return each sprite's share of each class; None without ground truth."""
    if not stats.counts:
        return None
    order = sorted(range(len(stats.classes)), key=lambda row: -sum(stats.counts[row]))
    left_out = order[MAX_CLASSES:]
    kept = [row for row in range(len(stats.classes)) if row not in left_out]
    sprite_of = {name: n for n, name in enumerate(stats.names) if name is not None}
    matched = [sprite_of[stats.classes[r]] for r in kept if stats.classes[r] in sprite_of]
    others = [n for n in range(len(stats.usage)) if n not in matched]
    columns = [None, *matched, *others]
    rows = []
    for row in kept:
        total, name = sum(stats.counts[row]) or 1, stats.classes[row]
        cells = [
            MatrixCell(
                stats.counts[row][0 if column is None else column + 1] / total,
                column is not None and sprite_of.get(name) == column,
            )
            for column in columns
        ]
        rows.append((name, cells))
    return Matrix(columns, rows, stats.unit, len(left_out))


def format_image_scores(folder: Path, percent: Iterable[str]) -> dict[int, str]:
    """Format the scores of each image, by its number; empty if they cannot be read."""
    try:
        found = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        texts: dict[int, list[str]] = {}
        for name, values in found.items():
            for number, value in enumerate(values):
                texts.setdefault(number, []).extend(_format(name, value, name in set(percent)))
        return {number: ", ".join(parts) for number, parts in texts.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _format(name: str, value: Any, percent: bool) -> Sequence[str]:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return []
    return [f"{name} {MeanStd(value).format(percent)}{'%' if percent else ''}"]

"""Comparison of finished runs, with the scores that were published for their datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from celstack.recipe.merge import Table
from celstack.runs.finished import FinishedRun
from celstack.runs.recipe_diff import VARY_WITHIN_EXPERIMENT, flatten, without
from celstack.runs.statistics import OUTLIER_RULE, MeanStd, find_outliers, mean_std
from celstack.text import format_value, printable

PUBLISHED = "published"
SCORE_FORMAT = (
    "Scores of several runs are means ± sample standard deviations. Columns with (%) are in "
    "percent; the files of the runs store fractions of 1."
)
PUBLISHED_NOTE = (
    "Published scores are in percent, as reported by their authors; they were not measured "
    "here, and may be for other images."
)


class ComparisonRow(NamedTuple):
    """A row: name, number of runs, images, and formatted scores by metric."""

    name: str
    runs: str
    images: str
    scores: dict[str, str]


class Comparison(NamedTuple):
    """A table of the runs on the same dataset, and notes to it."""

    title: str
    metrics: list[str]
    percent: frozenset[str]
    rows: list[ComparisonRow]
    notes: list[str]

    def heading(self) -> list[str]:
        """Return the names of the columns, with (%) where scores are in percent."""
        units = [f"{name} (%)" if name in self.percent else name for name in self.metrics]
        return ["", "runs", "images", *units]

    def cells(self, row: ComparisonRow) -> list[str]:
        """Return the cells of a row in the order of the heading."""
        return [row.name, row.runs, row.images, *(row.scores.get(m, "") for m in self.metrics)]


def compare(runs: Sequence[FinishedRun], each: bool = False) -> list[Comparison]:
    """Make a table for each dataset; datasets with different options are different.

    Args:
        runs: The runs to compare.
        each: Whether every run gets a row of its own, besides the mean over seeds.
    """
    same_data = _group([(run.recipe["dataset"]["use"], _data(run), run) for run in runs])
    return [_compare(title, members, each) for title, members in same_data.items()]


def as_markdown(comparisons: Sequence[Comparison]) -> str:
    """Format tables in Markdown, with their notes below."""
    lines = []
    for comparison in comparisons:
        heading = comparison.heading()
        lines += [f"## {_escape(comparison.title)}", ""]
        lines += [_line(heading), _line(["---"] * len(heading))]
        lines += [_line(comparison.cells(row)) for row in comparison.rows]
        lines += ["", *(f"- {_escape(note)}" for note in comparison.notes), ""]
    return "\n".join(lines)


def _compare(title: str, runs: Sequence[FinishedRun], each: bool) -> Comparison:
    percent = frozenset().union(*(run.percent for run in runs))
    rows: list[ComparisonRow] = []
    notes = [SCORE_FORMAT]
    for name, members in _group([(run.name, _experiment(run), run) for run in runs]).items():
        rows.append(_row(name, members, percent))
        left_out = find_outliers([run.loss for run in members])
        if left_out:
            kept = [run for index, run in enumerate(members) if index not in left_out]
            rows.append(_row(f"{name}, without outliers", kept, percent))
        if each and len(members) > 1:
            rows += [_row(f"{name}, seed {run.seed}", [run], percent) for run in members]
        if len(members) > 1:
            notes.append(_note(name, members, left_out))
    if len(notes) > 1:
        notes.append(OUTLIER_RULE)
    notes += [_failure_note(run, name) for run in runs for name in run.failed]
    for run in runs:
        for method, published in run.published.items():
            texts = {metric: f"{score:.1f}" for metric, score in published.items()}
            row = ComparisonRow(method, PUBLISHED, "", texts)
            if row not in rows:
                rows.append(row)
    if any(row.runs == PUBLISHED for row in rows):
        notes.append(PUBLISHED_NOTE)
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
    return Comparison(title, metrics, percent & set(metrics), rows, notes)


def _group(runs: Sequence[tuple[str, Table, FinishedRun]]) -> dict[str, list[FinishedRun]]:
    """Group runs by name and table; where names are ambiguous, append what differs."""
    tables: dict[tuple[str, str], Table] = {}
    members: dict[tuple[str, str], list[FinishedRun]] = {}
    for name, table, run in runs:
        tables[name, repr(table)] = table
        members.setdefault((name, repr(table)), []).append(run)
    namesakes = {
        key: [t for (name, _), t in tables.items() if name == key[0]] for key in tables
    }
    return {
        key[0] + _what_differs(tables[key], namesakes[key]): of_group
        for key, of_group in members.items()
    }


def _what_differs(table: Table, namesakes: Sequence[Table]) -> str:
    """Return in what a table differs from others of its name: ``(sprites.count = 4)``."""
    flat = [flatten(other) for other in namesakes]
    keys = sorted({key for other in flat for key in other})
    odd = [key for key in keys if len({repr(other.get(key)) for other in flat}) > 1]
    own = flatten(table)
    texts = [f"{key} = {format_value(own[key])}" if key in own else f"no {key}" for key in odd]
    return f" ({', '.join(texts)})" if texts else ""


def _experiment(run: FinishedRun) -> Table:
    return {**without(run.recipe, VARY_WITHIN_EXPERIMENT), "dataset": _data(run)}


def _data(run: FinishedRun) -> Table:
    # Published files are the same in any root; other roots contain other images.
    ignored = {"dataset.root"} if run.files else ()
    return dict(without(run.recipe, ignored)["dataset"])


def _row(name: str, runs: Sequence[FinishedRun], percent: frozenset[str]) -> ComparisonRow:
    metrics = dict.fromkeys(metric for run in runs for metric in run.metrics)
    scores = {}
    for metric in metrics:
        score = mean_std([run.metrics.get(metric, float("nan")) for run in runs])
        scores[metric] = _format(score, metric in percent, len(runs))
    images = dict.fromkeys(f"{run.images} of {run.split}" for run in runs)
    return ComparisonRow(name, str(len(runs)), ", ".join(images), scores)


def _format(score: MeanStd | None, percent: bool, runs: int) -> str:
    if score is None:
        return "-"
    # Do not silently ignore runs without the score.
    return score.format(percent) + (f" (of {score.samples})" if score.samples < runs else "")


def _note(name: str, runs: Sequence[FinishedRun], left_out: Sequence[int]) -> str:
    """Return which runs a row is the mean of, and which of them are outliers."""
    seeds = ", ".join(str(run.seed) for run in runs)
    if any(run.loss is None for run in runs):
        return f"{name}: seeds {seeds}; outliers unknown (a log.jsonl has no losses)."
    losses = ", ".join(f"{run.loss:.3g}" for run in runs)
    outliers = ", ".join(str(runs[index].seed) for index in left_out) or "none"
    return f"{name}: seeds {seeds}; reconstruction losses {losses}; outliers: {outliers}."


def _failure_note(run: FinishedRun, metric: str) -> str:
    """Return why a run has no score of a metric."""
    return printable(f"{run.name}, seed {run.seed}: no {metric}: {run.failed[metric]}.")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    """Escape Markdown and HTML in a text."""
    for odd in "\\`|<>[]":
        text = text.replace(odd, f"\\{odd}")
    return " ".join(text.split())

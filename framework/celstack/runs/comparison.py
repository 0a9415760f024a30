"""Finished runs side by side, with the figures that were published for their data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from celstack.recipe.merge import Table
from celstack.runs.finished import FinishedRun
from celstack.runs.statistics import OUTLIER_RULE, Figure, find_outliers, summarise
from celstack.text import format_value

UNIMPORTANT = ("seed", "description", "observers", "published")
"""Runs that differ in these alone are runs of the same experiment."""
PUBLISHED = "published"
MEANING = (
    "Figures of several runs are means ± sample deviations. Those under (%) are in percent; "
    "the runs' files have them as fractions of 1."
)
AS_PUBLISHED = (
    "Published figures are in percent, as their authors gave them: they were not measured "
    "here, and may be for other images."
)


class Row(NamedTuple):
    """One line: whose figures, of how many runs, for which images, and the figures."""

    name: str
    runs: str
    images: str
    figures: dict[str, str]


class Comparison(NamedTuple):
    """A table for the runs on the same data, and what a reader has to know about it."""

    title: str
    metrics: list[str]
    percent: frozenset[str]
    rows: list[Row]
    notes: list[str]

    def heading(self) -> list[str]:
        """Name the columns, with the unit where there is one."""
        units = [f"{name} (%)" if name in self.percent else name for name in self.metrics]
        return ["", "runs", "images", *units]

    def cells(self, row: Row) -> list[str]:
        """Lay a row out under the heading."""
        return [row.name, row.runs, row.images, *(row.figures.get(m, "") for m in self.metrics)]


def compare(runs: Sequence[FinishedRun], each: bool = False) -> list[Comparison]:
    """Make a table for each dataset; with ``each``, every run has a line of its own, too.

    A dataset with other options is another dataset, to which other figures belong.
    """
    same_data = _group([(run.recipe["dataset"]["use"], _data(run), run) for run in runs])
    return [_compare(title, members, each) for title, members in same_data.items()]


def as_markdown(comparisons: Sequence[Comparison]) -> str:
    """Write tables in Markdown, notes below."""
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
    rows: list[Row] = []
    notes = [MEANING]
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
    for run in runs:
        for method, figures in run.published.items():
            spelt = {metric: f"{figure:.1f}" for metric, figure in figures.items()}
            row = Row(method, PUBLISHED, "", spelt)
            if row not in rows:
                rows.append(row)
    if any(row.runs == PUBLISHED for row in rows):
        notes.append(AS_PUBLISHED)
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.figures))
    return Comparison(title, metrics, percent & set(metrics), rows, notes)


def _group(runs: Sequence[tuple[str, Table, FinishedRun]]) -> dict[str, list[FinishedRun]]:
    """Put runs with the same name and table together; where names do not do, say more."""
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
    """Say in what a table differs from others of its name: ``(sprites.count = 4)``."""
    flat = [flatten(other) for other in namesakes]
    keys = sorted({key for other in flat for key in other})
    odd = [key for key in keys if len({repr(other.get(key)) for other in flat}) > 1]
    own = flatten(table)
    said = [f"{key} = {format_value(own[key])}" if key in own else f"no {key}" for key in odd]
    return f" ({', '.join(said)})" if said else ""


def _experiment(run: FinishedRun) -> Table:
    table = {key: value for key, value in run.recipe.items() if key not in UNIMPORTANT}
    # How fast images come and how often they are saved changes nothing.
    training = dict(table.get("training", {}))
    for key in ("workers", "checkpoint_every"):
        training.pop(key, None)
    return {**table, "dataset": _data(run), "training": training}


def _data(run: FinishedRun) -> Table:
    # Where published files lie changes nothing in them; other folders hold other images.
    passed = ("root",) if run.files else ()
    return {key: value for key, value in run.recipe["dataset"].items() if key not in passed}


def flatten(value: Any, place: str = "") -> dict[str, Any]:
    """Return the leaves of a table by their places, such as ``stages[0].steps``."""
    if isinstance(value, dict):
        items = [(f"{place}.{key}" if place else key, item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {place: value}
    return {key: leaf for path, item in items for key, leaf in flatten(item, path).items()}


def _row(name: str, runs: Sequence[FinishedRun], percent: frozenset[str]) -> Row:
    metrics = dict.fromkeys(metric for run in runs for metric in run.metrics)
    figures = {}
    for metric in metrics:
        figure = summarise([run.metrics.get(metric, float("nan")) for run in runs])
        figures[metric] = _spell(figure, metric in percent, len(runs))
    images = dict.fromkeys(f"{run.images} of {run.split}" for run in runs)
    return Row(name, str(len(runs)), ", ".join(images), figures)


def _spell(figure: Figure | None, percent: bool, runs: int) -> str:
    if figure is None:
        return "-"
    # A run without the number is not to be forgotten silently.
    return figure.spell(percent) + (f" (of {figure.known})" if figure.known < runs else "")


def _note(name: str, runs: Sequence[FinishedRun], left_out: Sequence[int]) -> str:
    """Say which runs a row is the mean of, and which of them are outliers."""
    seeds = ", ".join(str(run.seed) for run in runs)
    if any(run.loss is None for run in runs):
        return f"{name}: seeds {seeds}; a run's log.jsonl has no losses, so no outlier is told."
    losses = ", ".join(f"{run.loss:.3g}" for run in runs)
    outliers = ", ".join(str(runs[index].seed) for index in left_out) or "none"
    return f"{name}: seeds {seeds}; reconstruction losses {losses}; outliers: {outliers}."


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    """Keep what somebody chose as a name from being read as Markdown or HTML."""
    for odd in "\\`|<>[]":
        text = text.replace(odd, f"\\{odd}")
    return " ".join(text.split())

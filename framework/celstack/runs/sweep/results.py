"""What a sweep found: a figure for every combination, mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.recipe.overrides import Override
from celstack.runs.comparison import MEANING, Comparison, Row
from celstack.runs.finished import FinishedRun, read_finished
from celstack.runs.statistics import ELBOW_RULE, Figure, find_elbow, summarise
from celstack.runs.sweep.grid import Axis, Cell, spell
from celstack.runs.sweep.plan import Plan
from celstack.text import format_value

SEED = "seed"
LOSS = "reconstruction loss"
SPRITES = "sprites.count"
"""Of the loss against this, the elbow is told (paper, supplementary, effect of K)."""


class Point(NamedTuple):
    """A value of the option that varies, and what came of it."""

    value: Override
    figure: Figure


class Series(NamedTuple):
    """One figure against one option, all others being the same."""

    name: str
    points: list[Point]
    elbow: int | None


class Results(NamedTuple):
    """The runs of a sweep that are finished, and why others are not."""

    recipe: str
    axes: list[Axis]
    runs: list[tuple[Cell, FinishedRun]]
    failures: list[tuple[Cell, str]]

    @property
    def measures(self) -> list[str]:
        """Name what was measured, the loss first."""
        metrics = dict.fromkeys(metric for _, run in self.runs for metric in run.metrics)
        return [LOSS, *metrics]

    @property
    def percent(self) -> frozenset[str]:
        """Name the metrics of which 1 is all."""
        return frozenset().union(*(run.percent for _, run in self.runs))

    @property
    def swept(self) -> list[Axis]:
        """Return what figures are drawn against: all that varies but the seed, if there is."""
        varied = [axis for axis in self.axes if len(axis.values) > 1]
        return [axis for axis in varied if axis.path != SEED] or varied or self.axes[:1]

    def series(self, axis: Axis, measure: str) -> list[Series]:
        """Return a measure against an option, for each combination of the others."""
        groups: dict[str, list[tuple[Cell, FinishedRun]]] = {}
        for cell, run in self.runs:
            groups.setdefault(spell(_without(cell, axis.path)), []).append((cell, run))
        return [_series(name, runs, axis, measure) for name, runs in groups.items()]

    def elbows(self) -> list[str]:
        """Say where the loss against the number of sprites has its elbow."""
        found = []
        for axis in [axis for axis in self.swept if axis.path == SPRITES]:
            for name, points, elbow in self.series(axis, LOSS):
                if elbow is not None:
                    value = format_value(points[elbow].value.value)
                    others = f" ({name})" if name else ""
                    found.append(f"elbow of the loss{others}: {SPRITES} = {value}")
        return found

    def table(self) -> Comparison:
        """Set all combinations below one another, failures and elbow in the notes."""
        combinations = dict.fromkeys(
            spell(_without(cell, "")) for cell, _ in [*self.runs, *self.failures]
        )
        rows = [self._row(name) for name in combinations]
        notes = [MEANING, "No run is left out of a mean."]
        elbows = self.elbows()
        notes += [f"{one[0].upper()}{one[1:]}." for one in elbows] + [ELBOW_RULE] * bool(elbows)
        notes += [f"Failed: {spell(cell)}: {reason}" for cell, reason in self.failures]
        measures = self.measures
        return Comparison(self.recipe, measures, self.percent & set(measures), rows, notes)

    def as_table(self) -> dict[str, Any]:
        """Return all that was found, for other programs."""
        return {
            "recipe": self.recipe,
            "grid": {axis.path: [one.value for one in axis.values] for axis in self.axes},
            "percent": sorted(self.percent & set(self.measures)),
            "runs": [
                {
                    "options": {one.path: one.value for one in cell},
                    "folder": f"{run.name}/{run.folder.name}",
                    "reconstruction_loss": run.loss,
                    "metrics": run.metrics,
                }
                for cell, run in self.runs
            ],
            "failed": [
                {"options": {one.path: one.value for one in cell}, "reason": reason}
                for cell, reason in self.failures
            ],
            "elbows": self.elbows(),
        }

    def _row(self, name: str) -> Row:
        runs = [run for cell, run in self.runs if spell(_without(cell, "")) == name]
        failed = [cell for cell, _ in self.failures if spell(_without(cell, "")) == name]
        figures = {measure: _figure(runs, measure) for measure in self.measures}
        spelt = {
            measure: figure.spell(measure in self.percent)
            for measure, figure in figures.items()
            if figure is not None
        }
        images = dict.fromkeys(f"{run.images} of {run.split}" for run in runs)
        count = f"{len(runs)} of {len(runs) + len(failed)}" if failed else str(len(runs))
        return Row(name or "all", count, ", ".join(images), spelt)


def gather(plan: Plan, folders: Sequence[Path | None], failures: Mapping[int, str]) -> Results:
    """Read what runs left; one that cannot be read has failed, too."""
    runs, failed = [], []
    for number, planned in enumerate(plan.runs):
        folder = folders[number]
        try:
            if number in failures or folder is None:
                raise CelstackError(failures.get(number, "it never began"))
            runs.append((planned.cell, read_finished(folder)))
        except CelstackError as error:
            failed.append((planned.cell, str(error)))
    return Results(plan.recipe, plan.axes, runs, failed)


def _series(
    name: str, runs: Sequence[tuple[Cell, FinishedRun]], axis: Axis, measure: str
) -> Series:
    points = []
    for value in in_order(axis.values):
        figure = _figure([run for cell, run in runs if value in cell], measure)
        if figure is not None:
            points.append(Point(value, figure))
    elbow = None
    if (axis.path, measure) == (SPRITES, LOSS):
        elbow = find_elbow([(float(one.value.value), one.figure.mean) for one in points])
    return Series(name, points, elbow)


def in_order(values: Sequence[Override]) -> list[Override]:
    """Put numbers in order; leave all else in that in which it was given."""
    if all(is_number(one.value) for one in values):
        return sorted(values, key=lambda one: float(one.value))
    return list(values)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _figure(runs: Sequence[FinishedRun], measure: str) -> Figure | None:
    known = [run.loss if measure == LOSS else run.metrics.get(measure) for run in runs]
    return summarise([value for value in known if value is not None])


def _without(cell: Cell, path: str) -> list[Override]:
    """Leave one option out of a combination, and the seed, over which means are taken."""
    return [one for one in cell if one.path not in (path, SEED)]

"""Results of a sweep: scores of every combination, mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.recipe.overrides import Override
from celstack.runs.comparison import SCORE_FORMAT, Comparison, ComparisonRow
from celstack.runs.finished import FinishedRun, read_finished
from celstack.runs.statistics import ELBOW_RULE, MeanStd, find_elbow, mean_std
from celstack.runs.sweep.grid import Axis, Cell, format_cell
from celstack.runs.sweep.plan import Plan
from celstack.text import format_value

SEED = "seed"
LOSS = "reconstruction loss"
SPRITES = "sprites.count"
"""The option against which the loss has an elbow (paper, supplementary, effect of K)."""


class SweepPoint(NamedTuple):
    """A value of the option that varies, and the score measured with it."""

    value: Override
    score: MeanStd


class Series(NamedTuple):
    """One score against one option, with all other options fixed."""

    name: str
    points: list[SweepPoint]
    elbow: int | None


class SweepResults(NamedTuple):
    """The finished runs of a sweep, and why others failed."""

    recipe: str
    axes: list[Axis]
    runs: list[tuple[Cell, FinishedRun]]
    failures: list[tuple[Cell, str]]

    @property
    def measures(self) -> list[str]:
        """The names of all measures: the loss first, then the metrics."""
        metrics = dict.fromkeys(metric for _, run in self.runs for metric in run.metrics)
        return [LOSS, *metrics]

    @property
    def percent(self) -> frozenset[str]:
        """The metrics that tables show in percent."""
        return frozenset().union(*(run.percent for _, run in self.runs))

    @property
    def swept(self) -> list[Axis]:
        """The axes to plot against: all that vary, without the seed if there are others."""
        varied = [axis for axis in self.axes if len(axis.values) > 1]
        return [axis for axis in varied if axis.path != SEED] or varied or self.axes[:1]

    def series(self, axis: Axis, measure: str) -> list[Series]:
        """Return a measure against an option, for each combination of the other options."""
        groups: dict[str, list[tuple[Cell, FinishedRun]]] = {}
        for cell, run in self.runs:
            groups.setdefault(format_cell(_without(cell, axis.path)), []).append((cell, run))
        return [_series(name, runs, axis, measure) for name, runs in groups.items()]

    def elbows(self) -> list[str]:
        """Return texts that name the elbow of the loss against the number of sprites."""
        found = []
        for axis in [axis for axis in self.swept if axis.path == SPRITES]:
            for name, points, elbow in self.series(axis, LOSS):
                if elbow is not None:
                    value = format_value(points[elbow].value.value)
                    others = f" ({name})" if name else ""
                    found.append(f"elbow of the loss{others}: {SPRITES} = {value}")
        return found

    def table(self) -> Comparison:
        """Return a table with a row for each combination; failures and elbows are notes."""
        combinations = dict.fromkeys(
            format_cell(_without(cell, "")) for cell, _ in [*self.runs, *self.failures]
        )
        rows = [self._row(name) for name in combinations]
        notes = [SCORE_FORMAT, "Means are over all runs; no outlier is excluded."]
        elbows = self.elbows()
        notes += [f"{one[0].upper()}{one[1:]}." for one in elbows] + [ELBOW_RULE] * bool(elbows)
        notes += [f"Failed: {format_cell(cell)}: {reason}" for cell, reason in self.failures]
        measures = self.measures
        return Comparison(self.recipe, measures, self.percent & set(measures), rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as a dictionary for JSON."""
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

    def _row(self, name: str) -> ComparisonRow:
        runs = [run for cell, run in self.runs if format_cell(_without(cell, "")) == name]
        failed = [cell for cell, _ in self.failures if format_cell(_without(cell, "")) == name]
        scores = {measure: _mean_score(runs, measure) for measure in self.measures}
        texts = {
            measure: score.format(measure in self.percent)
            for measure, score in scores.items()
            if score is not None
        }
        images = dict.fromkeys(f"{run.images} of {run.split}" for run in runs)
        count = f"{len(runs)} of {len(runs) + len(failed)}" if failed else str(len(runs))
        return ComparisonRow(name or "all", count, ", ".join(images), texts)


def read_results(
    plan: Plan, folders: Sequence[Path | None], failures: Mapping[int, str]
) -> SweepResults:
    """Read the folders of all runs; a run that cannot be read counts as failed."""
    runs, failed = [], []
    for number, planned in enumerate(plan.runs):
        folder = folders[number]
        try:
            if number in failures or folder is None:
                raise CelstackError(failures.get(number, "it was never started"))
            runs.append((planned.cell, read_finished(folder)))
        except CelstackError as error:
            failed.append((planned.cell, str(error)))
    return SweepResults(plan.recipe, plan.axes, runs, failed)


def _series(
    name: str, runs: Sequence[tuple[Cell, FinishedRun]], axis: Axis, measure: str
) -> Series:
    points = []
    for value in sorted_values(axis.values):
        score = _mean_score([run for cell, run in runs if value in cell], measure)
        if score is not None:
            points.append(SweepPoint(value, score))
    elbow = None
    if (axis.path, measure) == (SPRITES, LOSS):
        elbow = find_elbow([(float(one.value.value), one.score.mean) for one in points])
    return Series(name, points, elbow)


def sorted_values(values: Sequence[Override]) -> list[Override]:
    """Sort numbers; leave other values in the given order."""
    if all(is_number(one.value) for one in values):
        return sorted(values, key=lambda one: float(one.value))
    return list(values)


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mean_score(runs: Sequence[FinishedRun], measure: str) -> MeanStd | None:
    known = [run.loss if measure == LOSS else run.metrics.get(measure) for run in runs]
    return mean_std([value for value in known if value is not None])


def _without(cell: Cell, path: str) -> list[Override]:
    """Return a combination without one option, and without the seed, which is averaged."""
    return [one for one in cell if one.path not in (path, SEED)]

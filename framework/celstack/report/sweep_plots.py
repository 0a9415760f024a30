"""Plots of scores against an option that varies, as coordinates that parts.html draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from celstack.report.line_charts import (
    BOTTOM,
    HEIGHT,
    RIGHT,
    TOP,
    WIDTH,
    Tick,
    interpolate,
    label_color,
    svg_points,
)
from celstack.runs.sweep.grid import Axis
from celstack.runs.sweep.results import LOSS, Series, SweepResults, is_number, sorted_values
from celstack.text import format_value

LEFT = 80.0
"""Leaves space for numbers such as 1.25e-05."""
FLOOR = HEIGHT - BOTTOM - 14.0
"""Leaves space for the name of the horizontal axis below its ticks."""
MIN_TICK_DISTANCE = 1 / 16
"""As a share of the axis; values closer than this are placed at equal distances instead."""
MARGIN = 0.06
MIN_RELATIVE_RANGE = 0.02
"""The vertical axis spans at least this share of the largest value."""


class Marker(NamedTuple):
    """A score in the plot, with an error bar from ``high`` to ``low`` if they differ."""

    x: float
    y: float
    low: float
    high: float
    title: str
    elbow: bool


class PlotLine(NamedTuple):
    """The scores of one combination of the other options."""

    name: str
    color: str
    points: str
    markers: list[Marker]


class Plot(NamedTuple):
    """A plot of WIDTH x HEIGHT."""

    label: str
    axis: str
    lines: list[PlotLine]
    across: list[Tick]
    up: list[Tick]
    even: bool
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = FLOOR


def draw_plot(results: SweepResults, axis: Axis, measure: str) -> Plot | None:
    """Draw mean and deviation of a measure against an option; None if there is no value."""
    found = [one for one in results.series(axis, measure) if one.points]
    if not found:
        return None
    percent = measure in results.percent
    scale = 100.0 if percent else 1.0
    ends = [
        scale * (one.score.mean + sign * (one.score.std or 0.0))
        for series in found
        for one in series.points
        for sign in (-1, 1)
    ]
    low, high = _range(min(ends), max(ends), measure == LOSS)

    def up(value: float) -> float:
        return interpolate(FLOOR, TOP, (value - low) / (high - low))

    values = sorted_values(axis.values)
    shares, even = axis_positions([one.value for one in values])
    places = [interpolate(LEFT + 16, WIDTH - RIGHT - 16, share) for share in shares]
    where = {repr(one.value): x for one, x in zip(values, places, strict=True)}
    several = [label_color(number) for number in range(1, len(found) + 1)]
    colors = several if len(found) > 1 else ["var(--accent)"]
    lines = [
        _line(series, color, where, lambda y: up(scale * y), percent)
        for series, color in zip(found, colors, strict=True)
    ]
    across = [
        Tick(x, format_value(one.value)[:14]) for x, one in zip(places, values, strict=True)
    ]
    ticks = [Tick(up(value), f"{value:g}") for value in round_numbers(low, high)]
    label = f"{measure} (%)" if percent else measure
    return Plot(label, axis.path, lines, across, ticks, even)


def axis_positions(values: Sequence[Any]) -> tuple[list[float], bool]:
    """Return the positions of values on an axis, from 0 to 1, and whether equally spaced.

    Sorted numbers are placed to scale, unless some would be too close together. In that case,
    and for other values, positions are equally spaced.
    """
    count = len(values)
    evenly = [(index + 0.5) / count for index in range(count)], count > 1
    if count < 2 or not all(is_number(value) and math.isfinite(value) for value in values):
        return evenly
    low, high = float(values[0]), float(values[-1])
    shares = [(float(value) - low) / (high - low) for value in values]
    gaps = [after - before for before, after in pairwise(shares)]
    return (shares, False) if min(gaps) >= MIN_TICK_DISTANCE else evenly


def round_numbers(low: float, high: float) -> list[float]:
    """Return some round numbers from low to high."""
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * n for n in (1, 2, 2.5, 5, 10) if size * n >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _range(low: float, high: float, from_zero: bool) -> tuple[float, float]:
    """Add a margin to a range, and widen a very small one so that tick labels stay short."""
    if from_zero:
        low, high = min(0.0, low), high or 1.0
    margin = (
        max(MARGIN * (high - low), (MIN_RELATIVE_RANGE * abs(high) - (high - low)) / 2) or 1.0
    )
    return low - margin, high + margin


def _line(
    series: Series,
    color: str,
    where: dict[str, float],
    up: Callable[[float], float],
    percent: bool,
) -> PlotLine:
    markers = []
    for index, (value, score) in enumerate(series.points):
        x, spread = where[repr(value.value)], score.std or 0.0
        low, high = up(score.mean - spread), up(score.mean + spread)
        title = f"{value.path} = {format_value(value.value)}: {score.format(percent)}"
        markers.append(Marker(x, up(score.mean), low, high, title, index == series.elbow))
    return PlotLine(
        series.name, color, svg_points([(marker.x, marker.y) for marker in markers]), markers
    )

"""Plots: figures against an option that varies, as coordinates, which parts.html draws."""

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
    between,
    colour_of,
    path,
)
from celstack.runs.sweep.grid import Axis
from celstack.runs.sweep.results import LOSS, Results, Series, in_order, is_number
from celstack.text import format_value

LEFT = 80.0
"""Room for numbers such as 1.25e-05."""
FLOOR = HEIGHT - BOTTOM - 14.0
"""Below the ticks of the horizontal axis there is a line for its name."""
NEAREST = 1 / 16
"""Values nearer to each other than this share of an axis could not be told apart."""
MARGIN = 0.06
LEAST = 0.02
"""Figures that differ by less than this share of them are drawn as if by this much."""


class Spot(NamedTuple):
    """A figure in the drawing, from ``high`` to ``low`` where it has a deviation."""

    x: float
    y: float
    low: float
    high: float
    title: str
    elbow: bool


class Line(NamedTuple):
    """The figures of one combination of other options."""

    name: str
    colour: str
    points: str
    spots: list[Spot]


class Plot(NamedTuple):
    """A drawing of WIDTH x HEIGHT."""

    label: str
    axis: str
    lines: list[Line]
    across: list[Tick]
    up: list[Tick]
    even: bool
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = FLOOR


def draw_plot(results: Results, axis: Axis, measure: str) -> Plot | None:
    """Draw a measure against an option, mean and deviation; None if nothing is known."""
    found = [one for one in results.series(axis, measure) if one.points]
    if not found:
        return None
    percent = measure in results.percent
    scale = 100.0 if percent else 1.0
    ends = [
        scale * (one.figure.mean + sign * (one.figure.deviation or 0.0))
        for series in found
        for one in series.points
        for sign in (-1, 1)
    ]
    low, high = _range(min(ends), max(ends), measure == LOSS)

    def up(value: float) -> float:
        return between(FLOOR, TOP, (value - low) / (high - low))

    values = in_order(axis.values)
    shares, even = place([one.value for one in values])
    places = [between(LEFT + 16, WIDTH - RIGHT - 16, share) for share in shares]
    where = {repr(one.value): x for one, x in zip(values, places, strict=True)}
    several = [colour_of(number) for number in range(1, len(found) + 1)]
    colours = several if len(found) > 1 else ["var(--accent)"]
    lines = [
        _line(series, colour, where, lambda y: up(scale * y), percent)
        for series, colour in zip(found, colours, strict=True)
    ]
    across = [
        Tick(x, format_value(one.value)[:14]) for x, one in zip(places, values, strict=True)
    ]
    ticks = [Tick(up(value), f"{value:g}") for value in round_numbers(low, high)]
    label = f"{measure} (%)" if percent else measure
    return Plot(label, axis.path, lines, across, ticks, even)


def place(values: Sequence[Any]) -> tuple[list[float], bool]:
    """Return where values stand on an axis, from 0 to 1, and whether at even distances.

    Numbers in order stand where they are, unless some would be too near to each other; those,
    and what is no number, stand at even distances.
    """
    count = len(values)
    evenly = [(index + 0.5) / count for index in range(count)], count > 1
    if count < 2 or not all(is_number(value) and math.isfinite(value) for value in values):
        return evenly
    low, high = float(values[0]), float(values[-1])
    shares = [(float(value) - low) / (high - low) for value in values]
    gaps = [after - before for before, after in pairwise(shares)]
    return (shares, False) if min(gaps) >= NEAREST else evenly


def round_numbers(low: float, high: float) -> list[float]:
    """Return some round numbers from low to high."""
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * n for n in (1, 2, 2.5, 5, 10) if size * n >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _range(low: float, high: float, from_zero: bool) -> tuple[float, float]:
    """Widen a range a little, and one that is nearly nothing so that numbers stay short."""
    if from_zero:
        low, high = min(0.0, low), high or 1.0
    room = max(MARGIN * (high - low), (LEAST * abs(high) - (high - low)) / 2) or 1.0
    return low - room, high + room


def _line(
    series: Series,
    colour: str,
    where: dict[str, float],
    up: Callable[[float], float],
    percent: bool,
) -> Line:
    spots = []
    for index, (value, figure) in enumerate(series.points):
        x, spread = where[repr(value.value)], figure.deviation or 0.0
        low, high = up(figure.mean - spread), up(figure.mean + spread)
        title = f"{value.path} = {format_value(value.value)}: {figure.spell(percent)}"
        spots.append(Spot(x, up(figure.mean), low, high, title, index == series.elbow))
    return Line(series.name, colour, path([(spot.x, spot.y) for spot in spots]), spots)

"""Line and area charts over training steps, as coordinates that parts.html draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from celstack.report.training_log import LossPoint, StageStart, UsageShares

WIDTH, HEIGHT = 560.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 24.0, 34.0
MIN_TICKS = 3


class Tick(NamedTuple):
    """A position on an axis, and its label."""

    at: float
    text: str


class Shape(NamedTuple):
    """A line or an area, with its color and name."""

    points: str
    color: str
    name: str


class Chart(NamedTuple):
    """A chart of WIDTH x HEIGHT."""

    label: str
    shapes: list[Shape]
    filled: bool
    across: list[Tick]
    up: list[Tick]
    stages: list[Tick]
    marks: list[float]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


class Curve(NamedTuple):
    """The points of a line."""

    name: str
    points: Sequence[LossPoint]
    color: str = "var(--accent)"


def draw_curves(
    label: str,
    curves: Sequence[Curve],
    stages: Sequence[StageStart] = (),
    marks: Sequence[int] = (),
) -> Chart | None:
    """Draw positive values over steps, on a logarithmic scale; None if there are none."""
    curves = [
        curve._replace(points=[p for p in curve.points if p.value > 0]) for curve in curves
    ]
    points = [point for curve in curves for point in curve.points]
    if not points:
        return None
    last = max(point.step for point in points)
    low = math.log10(min(point.value for point in points))
    high = math.log10(max(point.value for point in points))
    middle, half = (low + high) / 2, max(high - low, 0.3) / 2 * 1.08
    low, high = middle - half, middle + half

    def up(value: float) -> float:
        return interpolate(HEIGHT - BOTTOM, TOP, (math.log10(value) - low) / (high - low))

    shapes = [
        Shape(
            svg_points([(_x(p.step, last), up(p.value)) for p in curve.points]),
            curve.color,
            curve.name,
        )
        for curve in curves
    ]
    ticks = [Tick(up(value), _format(value)) for value in _decades(low, high)]
    return _chart(label, shapes, False, last, ticks, stages, marks)


def draw_shares(
    label: str,
    usage: Sequence[UsageShares],
    names: Sequence[str],
    stages: Sequence[StageStart] = (),
) -> Chart | None:
    """Draw shares over time as stacked areas; None if there are too few points."""
    usage = [one for one in usage if len(one.shares) == len(names) and sum(one.shares) > 0]
    if len(usage) < 2:
        return None
    last = usage[-1].step
    below = [0.0] * len(usage)
    shapes = []
    for number, name in enumerate(names):
        above = [low + one.shares[number] for low, one in zip(below, usage, strict=True)]
        edge = [(one.step, value) for one, value in zip(usage, above, strict=True)]
        back = [(one.step, value) for one, value in zip(usage, below, strict=True)]
        # Steps before the first count are drawn like those after them.
        outline = [(0, edge[0][1]), *edge, *reversed(back), (0, back[0][1])]
        points = [
            (_x(step, last), interpolate(HEIGHT - BOTTOM, TOP, value))
            for step, value in outline
        ]
        shapes.append(Shape(svg_points(points), label_color(number + 1), name))
        below = above
    ticks = [Tick(interpolate(HEIGHT - BOTTOM, TOP, n / 4), f"{25 * n}%") for n in range(5)]
    return _chart(label, shapes, True, last, ticks, stages, ())


def label_color(label: int) -> str:
    """Return the color that ``color_labels`` gives a label."""
    shades = (0.55 + 0.45 * math.cos(2 * math.pi * (label * 0.618 + n / 3)) for n in range(3))
    return "#" + "".join(f"{round(255 * shade):02x}" for shade in shades)


def _chart(
    label: str,
    shapes: list[Shape],
    filled: bool,
    last: int,
    up: list[Tick],
    stages: Sequence[StageStart],
    marks: Sequence[int],
) -> Chart:
    across = [Tick(_x(step, last), f"{step:,}") for step in _round_steps(last)]
    starts = [Tick(_x(stage.start, last), stage.title) for stage in stages]
    return Chart(label, shapes, filled, across, up, starts, [_x(step, last) for step in marks])


def _x(step: int, last: int) -> float:
    return interpolate(LEFT, WIDTH - RIGHT, step / max(1, last))


def interpolate(start: float, end: float, share: float) -> float:
    """Interpolate between start and end; round to the precision of drawings."""
    return round(start + share * (end - start), 1)


def svg_points(points: Sequence[tuple[float, float]]) -> str:
    """Format points for an SVG polyline."""
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _round_steps(last: int) -> list[int]:
    """Return some round numbers from 0 to the last step."""
    rough = max(1, last) / 4
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * n for n in (1, 2, 2.5, 5, 10) if size * n >= rough)
    step = max(1, round(step))
    return list(range(0, last + 1, step))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten, or finer round numbers if those are too few."""
    # Beyond these powers floats are zero or infinite, as losses in a damaged log may nearly be.
    first, last = max(math.floor(low), -323), min(math.ceil(high), 308)
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        values = [n * 10.0**power for power in range(first, last + 1) for n in digits]
        values = [value for value in values if low <= math.log10(value) <= high]
        if len(values) >= MIN_TICKS:
            break
    return values


def _format(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-") if value < 1e-3 else f"{value:g}"

"""The history of a run, as its log tells it; read without torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

BINS = 240
"""A curve has no more points than these: the means of as many stretches of the run."""
USAGE_BINS = 24
PAUSE = 60.0
"""Seconds without a line of the log that may have been a pause of the run."""
LONG = 20
"""A pause is this many times longer than lines are usually apart."""


class Point(NamedTuple):
    """A value after so many steps."""

    step: int
    value: float


class Stage(NamedTuple):
    """A stage and the step after which it begins."""

    title: str
    start: int


class Share(NamedTuple):
    """How the filled layers of some steps are shared among the sprites; adds up to 1."""

    step: int
    shares: list[float]


class HealthLine(NamedTuple):
    """A finding of the health check, and the first and last step at which it was found."""

    kind: str
    part: str
    detail: str
    first: int
    last: int


class History(NamedTuple):
    """What became of a run, step by step."""

    steps: int
    """The last step that is told of."""
    losses: list[Point]
    stages: list[Stage]
    reassigned: list[int]
    """After which steps sprites started again."""
    usage: list[Share]
    checked: int | None
    """The last step after which there was a health check."""
    health: list[HealthLine]
    seconds: float | None
    """How long training took, pauses left out; None where the log does not tell."""


def read_history(log: Path) -> History:
    """Read a log; lines that make no sense, such as one cut off, are passed over."""
    losses: list[Point] = []
    stages: list[Stage] = []
    reassigned: list[int] = []
    counts: list[tuple[int, list[int]]] = []
    times: list[float] = []
    health: dict[tuple[str, str], HealthLine] = {}
    checked: int | None = None
    for line in _lines(log):
        step = line["step"]
        if _is_number(line.get("loss")):
            losses.append(Point(step, float(line["loss"])))
        if isinstance(line.get("begins"), str):
            stages.append(Stage(line["begins"], step))
        if "reassigned" in line:
            reassigned.append(step)
        if isinstance(line.get("usage"), list) and all(map(_is_number, line["usage"])):
            counts.append((step, line["usage"]))
        if isinstance(line.get("health"), list):
            checked = step
        for finding in _findings(line.get("health")):
            key = (finding.kind, finding.part)
            first = health[key].first if key in health else step
            health[key] = finding._replace(first=first, last=step)
        if _is_number(line.get("time")):
            times.append(float(line["time"]))
    return History(
        steps=losses[-1].step if losses else 0,
        losses=[
            Point(part[-1].step, sum(p.value for p in part) / len(part))
            for part in _parts(losses, BINS)
        ],
        stages=stages,
        reassigned=reassigned,
        usage=[_share(part) for part in _parts(counts, USAGE_BINS)],
        checked=checked,
        health=[*health.values()],
        seconds=_duration(times),
    )


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict) and type(line.get("step")) is int:
                    yield line
    except OSError:  # A run that has just begun has no log.
        return


def _findings(lines: Any) -> Iterator[HealthLine]:
    for line in lines if isinstance(lines, list) else ():
        known = line if isinstance(line, dict) else {}
        kind, part, detail = (known.get(name) for name in ("kind", "part", "detail"))
        if isinstance(kind, str) and isinstance(part, str) and isinstance(detail, str):
            yield HealthLine(kind, part, detail, 0, 0)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _parts(items: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into parts of the same length, but for one, no more than so many."""
    count = min(most, len(items))
    for number in range(count):
        yield items[number * len(items) // count : (number + 1) * len(items) // count]


def _share(part: Iterable[tuple[int, list[int]]]) -> Share:
    steps, counts = zip(*part, strict=True)
    sums = [sum(column) for column in zip(*counts, strict=False)]
    whole = sum(sums) or 1
    return Share(steps[-1], [one / whole for one in sums])


def _duration(times: Sequence[float]) -> float | None:
    """Add up the time between lines, but for that between being stopped and going on."""
    gaps = [max(0.0, later - earlier) for earlier, later in pairwise(times)]
    if not gaps:
        return None
    limit = max(PAUSE, LONG * median(gaps))
    return sum(gap for gap in gaps if gap <= limit)

"""The training log of a run, summarized for charts without importing torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

MAX_LOSS_POINTS = 240
"""Longer logs are averaged over as many bins."""
MAX_USAGE_POINTS = 24
MIN_PAUSE_SECONDS = 60.0
"""A shorter time between two lines of the log is never a pause of the run."""
MIN_PAUSE_RATIO = 20
"""A pause is at least this many times longer than the median time between lines."""


class LossPoint(NamedTuple):
    """The loss after ``step`` steps."""

    step: int
    value: float


class StageStart(NamedTuple):
    """The title of a stage, and the step after which it starts."""

    title: str
    start: int


class UsageShares(NamedTuple):
    """Each sprite's share of the filled layers of some steps; the shares sum to 1."""

    step: int
    shares: list[float]


class HealthLine(NamedTuple):
    """A finding of the health check, with the first and last step at which it was found."""

    kind: str
    part: str
    detail: str
    first: int
    last: int


class TrainingLog(NamedTuple):
    """Losses, stages, usage and findings of a run."""

    steps: int
    """The last step in the log."""
    losses: list[LossPoint]
    stages: list[StageStart]
    reassigned: list[int]
    """The steps after which sprites were reassigned."""
    usage: list[UsageShares]
    checked: int | None
    """The step of the last health check."""
    health: list[HealthLine]
    ended: str
    """Why training ended before its last step; empty if it did not."""
    seconds: float | None
    """The training time without pauses; None if the log has no times."""
    last_time: float | None
    """When the last line with a time was written, in seconds since 1970."""


def read_training_log(log: Path) -> TrainingLog:
    """Read a log; invalid lines, such as an incomplete last one, are skipped."""
    losses: list[LossPoint] = []
    stages: list[StageStart] = []
    reassigned: list[int] = []
    counts: list[tuple[int, list[int]]] = []
    times: list[float] = []
    health: dict[tuple[str, str], HealthLine] = {}
    checked: int | None = None
    ended = ""
    for line in _lines(log):
        step = line["step"]
        if _is_number(line.get("loss")):
            losses.append(LossPoint(step, float(line["loss"])))
        if isinstance(line.get("begins"), str):
            stages.append(StageStart(line["begins"], step))
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
        if isinstance(line.get("ended"), str):
            ended = line["ended"]
        if _is_number(line.get("time")):
            times.append(float(line["time"]))
    return TrainingLog(
        steps=losses[-1].step if losses else 0,
        losses=[
            LossPoint(part[-1].step, sum(p.value for p in part) / len(part))
            for part in _split(losses, MAX_LOSS_POINTS)
        ],
        stages=stages,
        reassigned=reassigned,
        usage=[_usage_shares(part) for part in _split(counts, MAX_USAGE_POINTS)],
        checked=checked,
        health=[*health.values()],
        ended=ended,
        seconds=_duration(times),
        last_time=times[-1] if times else None,
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
    except OSError:  # A run that has just started has no log.
        return


def _findings(lines: Any) -> Iterator[HealthLine]:
    for line in lines if isinstance(lines, list) else ():
        known = line if isinstance(line, dict) else {}
        kind, part, detail = (known.get(name) for name in ("kind", "part", "detail"))
        if isinstance(kind, str) and isinstance(part, str) and isinstance(detail, str):
            yield HealthLine(kind, part, detail, 0, 0)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _split(items: Sequence[Any], max_parts: int) -> Iterator[Sequence[Any]]:
    """Split a sequence into at most ``max_parts`` parts of nearly equal length."""
    count = min(max_parts, len(items))
    for number in range(count):
        yield items[number * len(items) // count : (number + 1) * len(items) // count]


def _usage_shares(part: Iterable[tuple[int, list[int]]]) -> UsageShares:
    steps, counts = zip(*part, strict=True)
    sums = [sum(column) for column in zip(*counts, strict=False)]
    total = sum(sums) or 1
    return UsageShares(steps[-1], [one / total for one in sums])


def _duration(times: Sequence[float]) -> float | None:
    """Add up the times between lines, except pauses between stopping and resuming."""
    gaps = [max(0.0, later - earlier) for earlier, later in pairwise(times)]
    if not gaps:
        return None
    limit = max(MIN_PAUSE_SECONDS, MIN_PAUSE_RATIO * median(gaps))
    return sum(gap for gap in gaps if gap <= limit)

"""The schedule: at which steps each stage starts and ends, and its learning-rate factor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from celstack.recipe.assembly import Stage


@attrs.frozen
class ScheduledStage:
    """A stage with its steps in the run: those after ``start``, up to and including ``end``."""

    stage: Stage
    number: int
    start: int
    end: int

    @property
    def title(self) -> str:
        """Return the name of the stage, or its number if it has none."""
        return self.stage.name or f"stage {self.number}"

    def rate_factor(self, step: int) -> float:
        """Return the factor of the learning rates after so many steps."""
        done, warmup = step - self.start, self.stage.warmup
        if done < warmup:
            return (done + 1) / (warmup + 1)
        if self.stage.schedule == "constant":
            return 1.0
        share = (done - warmup) / max(self.end - self.start - warmup, 1)
        return 0.5 * (1 + math.cos(math.pi * share))


def schedule(stages: Sequence[Stage], images: int, batch_size: int) -> list[ScheduledStage]:
    """Convert stages to ranges of steps; the last batch of an epoch may be smaller."""
    per_epoch = math.ceil(images / batch_size)
    scheduled: list[ScheduledStage] = []
    for number, stage in enumerate(stages, start=1):
        start = scheduled[-1].end if scheduled else 0
        length = stage.steps if stage.steps is not None else (stage.epochs or 0) * per_epoch
        scheduled.append(ScheduledStage(stage, number, start, start + length))
    return scheduled

"""Update and compute metrics; one that fails costs only itself."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celstack.errors import CelstackError
from celstack.interfaces.dataset import Batch
from celstack.interfaces.metric import Metric
from celstack.scene import Rendering, Scene
from celstack.text import describe_error, format_value

LOG = logging.getLogger("celstack")


class MetricList:
    """The metrics of one evaluation.

    One whose ground truth the batches lack is left out; so is one that raises or returns no
    number, and ``failures`` says why, by its name.

    Args:
        metrics: They are reset here.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.failures: dict[str, str] = {}
        self._metrics = list(metrics)
        self._images = 0
        for metric in list(self._metrics):
            with self._drop_on_failure(metric, "reset"):
                metric.reset()

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Add a batch to every metric."""
        self._images += len(batch)
        for metric in list(self._metrics):
            with self._drop_on_failure(metric, "update"):
                if any(getattr(batch, need) is None for need in metric.needs):
                    self._metrics.remove(metric)
                else:
                    metric.update(scene, rendering, batch)

    def compute(self) -> dict[str, float]:
        """Return the scores of all batches so far, by the names of the metrics."""
        scores = {}
        for metric in list(self._metrics):
            with self._drop_on_failure(metric, "compute"):
                number = as_number(metric.compute())
                if metric.scores is not None:
                    self._check_image_scores(metric.scores)
                scores[metric.name] = number
        return scores

    def _check_image_scores(self, scores: Any) -> None:
        found = len([as_number(score) for score in scores])
        if found != self._images:
            raise CelstackError(f"scores has {found} numbers for {self._images} images")

    @contextmanager
    def _drop_on_failure(self, metric: Metric, method: str) -> Iterator[None]:
        try:
            yield
        # Metrics of other packages may raise anything.
        except Exception as error:
            self._metrics.remove(metric)
            told = str(error) if isinstance(error, CelstackError) else describe_error(error)
            self.failures[metric.name] = f"it failed in {method}: {told}"


def as_number(value: Any) -> float:
    """Convert a score, which may be a tensor of one number, or raise CelstackError."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise CelstackError(f"{format_value(value)} is not a number") from None


def warn_of_failures(failures: Mapping[str, str], folder: Path | None = None) -> None:
    """Log why metrics have no score, and the command that evaluates the run again.

    Args:
        failures: The reasons, by the names of the metrics.
        folder: The folder of the run; None if there is none.
    """
    again = ""
    if folder is not None:
        command = shlex.join(["celstack", "evaluate", str(folder)])
        again = f"; when it is mended, evaluate again with: {command}"
    for name, reason in failures.items():
        LOG.warning("metric %s has no score: %s%s", name, reason, again)

"""Metric: how well images were explained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from celstack.interfaces.dataset import Batch
from celstack.interfaces.part import Part
from celstack.scene import Rendering, Scene


class Metric(Part):
    """A score that compares scenes and renderings with the ground truth.

    Laws:
        How images are grouped into batches changes neither the score nor ``scores``.
        ``reset`` discards all batches.
        The fields of Batch named in ``needs`` are not None when ``update`` is called; for a
        dataset that lacks them the metric is left out, not zero.

    A metric that raises, or returns no number, is left out with a warning that says why; the
    other scores of the run are kept.
    """

    needs: tuple[str, ...] = ()
    """The ground truth that it needs: names of fields of Batch."""
    percent: bool = False
    """Whether 1 is the maximum, so that tables show the score in percent. The score of any
    other metric is an error: less is better."""
    scores: Sequence[float] | None = None
    """The score of each image so far, in their order, so that reports can show the best and
    the worst; NaN for an image without a score. None if only the whole set has a score."""

    @abstractmethod
    def reset(self) -> None:
        """Discard all batches so far."""

    @abstractmethod
    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Add a batch."""

    @abstractmethod
    def compute(self) -> float:
        """Return the score of all batches so far."""

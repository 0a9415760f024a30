"""Metric: how well images were explained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from celstack.interfaces.dataset import Batch
from celstack.interfaces.part import Part
from celstack.scene import Rendering, Scene


class Metric(Part):
    """Scenes, renderings and truth to one number.

    Laws:
        How images are grouped into batches does not change the number, nor ``scores``.
        ``reset`` forgets everything.
        The fields of Batch named by ``needs`` are there when ``update`` is called; where a
        dataset has not got them the metric is left out, not zero.
    """

    needs: tuple[str, ...] = ()
    percent: bool = False
    """Whether 1 means all, so that tables show the number in percent."""
    scores: Sequence[float] | None = None
    """The score of each image so far, in their order, so that the best and the worst can be
    shown; NaN for an image that has none. None where only all images together have a score."""

    @abstractmethod
    def reset(self) -> None:
        """Begin anew."""

    @abstractmethod
    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Take a batch into account."""

    @abstractmethod
    def compute(self) -> float:
        """Return the number for all batches so far."""

"""Partial metrics: what metrics over a confusion table, or over images, have in common."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.confusion import Confusion
from celstack.interfaces.dataset import Batch
from celstack.interfaces.metric import Metric
from celstack.scene import Rendering, Scene


class ConfusionMetric(Metric):
    """A percentage computed from one confusion table over all images.

    A subclass sets ``needs`` to ``("classes",)`` to count pixels or to ``("label",)`` to count
    images, and computes its number from ``self.confusion``.
    """

    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start with an empty table."""
        self.confusion = Confusion()

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count the pixels or images of a batch."""
        if "classes" in self.needs:
            self.confusion.add_pixels(scene, rendering, batch)
        else:
            self.confusion.add_images(scene, rendering, batch)


class PerImageMetric(Metric):
    """A metric that scores every image by itself; its number is the mean over images.

    A subclass implements ``score_images``.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard all scores."""
        self.image_scores: list[float] = []

    @abstractmethod
    def score_images(
        self, scene: Scene, rendering: Rendering, batch: Batch
    ) -> Float[Tensor, " B"]:
        """Return the score of each image of a batch; NaN for an image that has none."""

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Append the scores of a batch."""
        self.image_scores += self.score_images(scene, rendering, batch).tolist()

    @property
    def scores(self) -> list[float]:  # type: ignore[override]
        """The score of each image so far."""
        return self.image_scores

    def compute(self) -> float:
        """Return the mean over images."""
        scores = self.scores
        return sum(scores) / len(scores)

import math

import pytest
import torch

from celstack import Batch, Metric, Rendering, Scene
from celstack.evaluation import ConfusionMetric, PerImageMetric
from celstack.testing import check_metric


class PixelHits(ConfusionMetric):
    """Counts pixels."""

    needs = ("classes",)

    def compute(self):
        """Return the share of pixels on the diagonal."""
        return (self.confusion.table.diagonal().sum() / self.confusion.table.sum()).item()


class ImageHits(PixelHits):
    """Counts images."""

    needs = ("label",)


class Brightness(PerImageMetric):
    """Scores an image by the mean of its values."""

    def score_images(self, scene, rendering, batch):
        """Return the mean of each image."""
        return batch.images.flatten(1).mean(1)


@pytest.fixture
def batch():
    """Two images of two pixels: the first shows sprite 0, of the second nothing is visible."""
    scene = Scene(
        sprite=torch.tensor([[0], [-1]]),
        sprite_params=torch.zeros(2, 1, 0),
        layer_params=torch.zeros(2, 1, 0),
        occlusion=torch.zeros(2, 1, 1),
    )
    black, visible = torch.zeros(2, 3, 1, 2), torch.tensor([[[[1.0, 0.0]]], [[[0.0, 0.0]]]])
    images = torch.tensor([0.25, 0.75])[:, None, None, None].expand(2, 3, 1, 2)
    truth = {"classes": torch.tensor([[[1, 1]], [[0, 0]]]), "label": torch.tensor([1, 1])}
    rendering = Rendering(black, torch.zeros(2, 1, 4, 1, 2), black, visible)
    return scene, rendering, Batch(images, **truth)


@pytest.mark.parametrize(("metric", "expected"), [(PixelHits(), 3 / 4), (ImageHits(), 1 / 2)])
def test_needs_decide_whether_pixels_or_images_are_counted(metric, expected, batch):
    metric.update(*batch)

    assert metric.compute() == expected


def test_the_number_of_a_metric_per_image_is_the_mean_of_its_scores(batch):
    metric = Brightness()

    metric.update(*batch)
    metric.update(*batch)

    assert metric.scores == [0.25, 0.75] * 2
    assert metric.compute() == 0.5


def test_reset_discards_counts_and_scores(batch):
    for metric in (PixelHits(), Brightness()):
        metric.update(*batch)
        metric.reset()

        assert metric.scores in (None, [])
    assert math.isnan(PixelHits().compute())


@pytest.mark.parametrize("kind", [PixelHits, ImageHits, Brightness])
def test_they_keep_the_laws_of_metrics(kind):
    assert issubclass(kind, Metric)
    check_metric(kind())

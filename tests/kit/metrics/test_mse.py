import pytest
import torch

from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene
from celstack.testing import check_metric
from celstack_kit.metrics.mse import Mse


def judged(images, rendered):
    """Make what a metric is told, for images of three colours and one value each."""
    images, rendered = (
        torch.tensor(values).view(-1, 1, 1, 1).expand(-1, 3, 2, 2)
        for values in (images, rendered)
    )
    batch = len(images)
    scene = Scene(
        sprite=torch.zeros(batch, 1, dtype=torch.int64),
        sprite_params=torch.zeros(batch, 1, 0),
        layer_params=torch.zeros(batch, 1, 0),
        occlusion=torch.zeros(batch, 1, 1),
    )
    layers, visible = torch.zeros(batch, 1, 4, 2, 2), torch.zeros(batch, 1, 2, 2)
    return scene, Rendering(rendered, layers, images, visible), Batch(images)


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Mse())


@pytest.mark.parametrize(
    ("images", "rendered", "error"),
    [
        ([0.5], [0.5], 0.0),
        ([0.0], [0.5], 0.25),
        ([0.5], [0.0], 0.25),
        ([0.0, 0.0], [0, 1], 0.5),
    ],
)
def test_values(images, rendered, error):
    metric = Mse()

    metric.update(*judged(images, [float(value) for value in rendered]))

    assert metric.compute() == error


def test_a_small_batch_does_not_count_as_much_as_a_large_one():
    metric = Mse()

    metric.update(*judged([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    metric.update(*judged([0.0], [1.0]))

    assert metric.compute() == 0.25


def test_it_needs_no_ground_truth():
    assert Mse.needs == ()


def test_every_image_has_its_own_error():
    metric = Mse()

    metric.update(*judged([0.0, 0.0], [0.0, 0.5]))
    metric.update(*judged([0.0], [1.0]))

    assert metric.scores == [0.0, 0.25, 1.0]

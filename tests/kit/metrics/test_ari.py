import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene
from celstack.testing import check_metric
from celstack_kit.metrics.ari import Ari, adjusted_rand


def index(truth, labels):
    """Score one image that is one row."""
    return adjusted_rand(torch.tensor([[truth]]), torch.tensor([[labels]])).item()


def judged(truth, visible):
    """Make what a metric is told, for images of one row."""
    truth, visible = torch.tensor(truth)[:, None], torch.tensor(visible)[:, :, None]
    batch, layers, *canvas = visible.shape
    scene = Scene(
        sprite=torch.zeros(batch, layers, dtype=torch.int64),
        sprite_params=torch.zeros(batch, layers, 0),
        layer_params=torch.zeros(batch, layers, 0),
        occlusion=torch.zeros(batch, layers, layers),
    )
    images = torch.zeros(batch, 3, *canvas)
    rendering = Rendering(images, torch.zeros(batch, layers, 4, *canvas), images, visible)
    return scene, rendering, Batch(images, truth)


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Ari())


@pytest.mark.parametrize(
    ("truth", "labels", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [2, 2, 0, 0], 1.0),  # names do not matter
        ([0, 0, 1, 1], [0, 0, 0, 0], 0.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),  # worse than chance
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),  # all background, and found to be
        ([3, 3, 3, 3], [0, 0, 0, 0], 1.0),  # one object, nothing else
        ([0, 1, 2, 3], [3, 2, 1, 0], 1.0),  # every pixel its own object
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.0),
        ([0, 0, 1, 1], [0, 0, 1, 2], 4 / 7),  # more layers than objects
        ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
        ([0], [1], 1.0),
    ],
)
def test_values(truth, labels, expected):
    assert index(truth, labels) == pytest.approx(expected, abs=1e-12)
    assert adjusted_rand_score(truth, labels) == pytest.approx(expected, abs=1e-12)


@st.composite
def labelings(draw):
    """Two labelings of the same pixels, with few or many labels each."""
    pixels = draw(st.integers(1, 30))
    most = st.integers(0, 6)
    row = [st.lists(st.integers(0, draw(most)), min_size=pixels, max_size=pixels)] * 2
    return draw(row[0]), draw(row[1])


@given(labelings())
@settings(deadline=None, max_examples=150)
def test_it_agrees_with_scikit_learn(pair):
    truth, labels = pair

    assert index(truth, labels) == pytest.approx(adjusted_rand_score(truth, labels), abs=1e-9)


def test_images_of_a_batch_do_not_disturb_one_another():
    random = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 4, (6, 5, 7), generator=random)
    labels = torch.randint(0, 3, (6, 5, 7), generator=random)
    truth[1], labels[2], truth[3], labels[3] = 0, 2, 1, 0

    scores = adjusted_rand(truth, labels)

    expected = [
        adjusted_rand_score(t.flatten().numpy(), p.flatten().numpy())
        for t, p in zip(truth, labels, strict=True)
    ]
    assert scores.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("side", [511, 640, 777])
def test_large_images_with_one_label_are_perfect_to_the_last_bit(side):
    same = torch.zeros(1, side, side, dtype=torch.int64)

    assert adjusted_rand(same, same).item() == 1.0


def test_it_is_a_mean_over_images_not_over_pixels_of_all():
    metric = Ari()

    # The same objects, numbered the other way round in the second image.
    visible = [[[0.9, 0.9, 0.0, 0.0]], [[0.0, 0.0, 0.9, 0.9]]]
    metric.update(*judged([[1, 1, 0, 0], [1, 1, 0, 0]], visible))
    metric.update(*judged([[1, 1, 0, 0]], [[[0.0, 0.0, 0.0, 0.0]]]))

    assert metric.compute() == pytest.approx(2 / 3)


def test_it_is_left_out_where_instances_are_not_known():
    assert Ari.needs == ("instances",)

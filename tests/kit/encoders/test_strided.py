import pytest
import torch

from celstack.testing import check_encoder
from celstack_kit.encoders.strided import Strided


@pytest.fixture
def encoder():
    """A small encoder for images of 3 x 20 x 35."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = Strided(width=4, features=6)
        encoder.prepare((3, 20, 35))
        yield encoder


def test_it_keeps_the_promises_of_an_encoder():
    check_encoder(Strided(width=4, features=6))


@pytest.mark.parametrize(
    ("height", "width", "positions"), [(35, 35, 9), (64, 64, 16), (16, 33, 3), (1, 1, 1)]
)
def test_four_convolutions_halve_the_image_and_keep_what_is_left_over(height, width, positions):
    encoder = Strided(width=4, features=6)

    encoder.prepare((3, height, width))

    linear = next(m for m in encoder.modules() if isinstance(m, torch.nn.Linear))
    assert linear.in_features == 4 * positions
    assert encoder.eval()(torch.rand(2, 3, height, width)).shape == (2, 6)


def test_it_sees_where_things_are(encoder):
    images = torch.zeros(2, 3, 20, 35)
    images[0, :, 2:8, 2:8] = 1.0
    images[1, :, 12:18, 25:31] = 1.0

    features = encoder.train()(images)

    assert (features[0] - features[1]).abs().max() > 0.1


def test_features_vary_among_dark_images_from_the_start(encoder):
    images = torch.rand(16, 3, 20, 35) * 0.02

    features = encoder.train()(images)

    assert features.std(0).mean() > 0.3

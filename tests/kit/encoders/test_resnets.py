import pytest
import torch

from celstack.testing import check_encoder
from celstack_kit.encoders.resnet18 import Resnet18
from celstack_kit.encoders.resnet32 import Resnet32


def test_resnet32_keeps_the_promises_of_an_encoder():
    check_encoder(Resnet32())


def test_resnet18_keeps_the_promises_of_an_encoder():
    check_encoder(Resnet18())


@pytest.mark.parametrize(
    ("encoder", "features"),
    [
        (Resnet32(), 64),
        (Resnet32(pool=4), 1024),
        (Resnet18(), 512),
        (Resnet18(pool=2), 2048),
    ],
)
def test_the_number_of_features_is_the_papers(encoder, features):
    encoder.prepare((3, 35, 35))

    assert encoder(torch.rand(2, 3, 35, 35)).shape == (2, features)


def test_resnet32_has_the_published_number_of_parameters():
    # 464,154 with its classifier of 64 x 10 weights and 10 biases.
    encoder = Resnet32()
    encoder.prepare((3, 32, 32))

    assert sum(parameter.numel() for parameter in encoder.parameters()) == 464_154 - 650


def test_resnet32_counts_to_thirty_one_convolutions_without_the_classifier():
    encoder = Resnet32()
    encoder.prepare((3, 32, 32))

    assert sum(isinstance(module, torch.nn.Conv2d) for module in encoder.modules()) == 31


@pytest.mark.parametrize("kind", [Resnet32, Resnet18])
def test_grayscale_images_are_welcome(kind):
    encoder = kind()
    encoder.prepare((1, 32, 32))

    assert encoder(torch.rand(2, 1, 32, 32)).shape == (2, encoder.num_features)

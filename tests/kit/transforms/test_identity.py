import torch

from celstack.testing import check_transform
from celstack_kit.transforms.identity import Identity


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Identity())


def test_it_returns_the_images_themselves():
    images = torch.rand(2, 4, 3, 3)

    assert Identity()(images, torch.zeros(2, 0)) is images

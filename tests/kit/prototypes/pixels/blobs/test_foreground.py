import numpy as np
import pytest
import torch

from celstack_kit.prototypes.pixels.blobs.foreground import (
    _otsu,
    find_foreground,
    light_deviation,
)


def ground(count=30, side=48, level=0.5, noise=0.004, seed=0):
    """Gray images, each with a light of its own that falls off to one side."""
    random = torch.Generator().manual_seed(seed)
    slope = 0.2 * (torch.rand(count, 1, 1, 1, generator=random) - 0.5)
    gain = 0.8 + 0.4 * torch.rand(count, 1, 1, 1, generator=random)
    across = torch.linspace(-1, 1, side)
    images = level * gain * (1 + slope * across).expand(count, 3, side, side)
    return images + noise * torch.randn(count, 3, side, side, generator=random)


def put(images, color, size=10, seed=1):
    """Put a square of this color somewhere into each image; return where."""
    random = np.random.default_rng(seed)
    masks = np.zeros((len(images), *images.shape[2:]), bool)
    for image, mask in zip(images, masks, strict=True):
        row, column = random.integers(2, images.shape[2] - size - 2, 2)
        mask[row : row + size, column : column + size] = True
        image[:, mask] = torch.tensor(color)[:, None]
    return masks


def agreement(found, true):
    return (found & true).sum() / (found | true).sum()


@pytest.mark.parametrize("color", [(0.8, 0.2, 0.2), (0.1, 0.1, 0.1), (1.0, 1.0, 1.0)])
def test_objects_are_found_whatever_the_light(color):
    images = ground()
    true = put(images, color)

    assert agreement(find_foreground(images), true) > 0.9


def test_objects_on_black_are_found():
    images = torch.zeros(20, 3, 35, 35)
    true = put(images, (0.0, 0.0, 1.0))

    assert agreement(find_foreground(images), true) > 0.95


def test_a_soft_shadow_is_not_an_object():
    images = ground(side=96)
    true = put(images, (0.2, 0.7, 0.2), size=20)
    down, across = np.mgrid[0:96, 0:96]
    for image, mask in zip(images, true, strict=True):
        row, column = np.argwhere(mask).mean(0)
        distance = np.hypot(down - row - 14, across - column)
        shadow = 1 - 0.2 * np.exp(-0.5 * (distance / 6) ** 2)
        image[:, torch.from_numpy(~mask)] *= torch.from_numpy(shadow[~mask]).float()

    assert agreement(find_foreground(images), true) > 0.85


def test_images_without_objects_have_no_foreground():
    assert find_foreground(torch.full((5, 3, 32, 32), 0.4)).mean() == 0


def test_the_light_of_each_image_is_removed():
    assert light_deviation(ground(noise=0.0)).abs().max() < 0.02


def test_the_threshold_lies_between_two_classes():
    values = torch.cat([torch.linspace(0.0, 0.2, 900), torch.linspace(0.8, 1.0, 100)])

    assert 0.2 <= _otsu(values) <= 0.8

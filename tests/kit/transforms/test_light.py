import pytest
import torch

from celstack.testing import check_transform
from celstack_kit.transforms.light import Light


def lit(transform, log_light, image=0.4, size=(24, 32)):
    """A gray image under a light that is given on the grid of the transform."""
    images = torch.full((1, 4, *size), image)
    images[:, -1] = 1.0
    return transform(images, log_light.view(1, -1))[:, :-1]


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Light(cells=3))


def test_corners_of_the_grid_are_corners_of_the_image():
    grid = torch.zeros(2, 2)
    grid[0, 1] = 0.5

    image = lit(Light(cells=2), grid)

    assert image[0, :, 0, -1].tolist() == pytest.approx([0.4 * 1.6487] * 3, abs=1e-3)
    assert image[0, 0, -1, 0].item() == pytest.approx(0.4)
    assert image[0, 0, 0, 0].item() == pytest.approx(0.4)


def test_a_light_is_recovered_from_the_image():
    torch.manual_seed(0)
    transform = Light(cells=4)
    truth = 0.3 * torch.randn(4, 4)
    image = lit(transform, truth, size=(64, 64))

    params = transform.params_from_target(
        torch.full_like(image, 0.4), image, torch.ones_like(image[:, :1])
    )

    assert (lit(transform, params, size=(64, 64)) - image).abs().max() < 0.03


@pytest.mark.parametrize("hidden", [True, False])
def test_what_has_another_hue_or_is_hidden_does_not_change_the_light(hidden):
    transform = Light(cells=4)
    image = torch.full((1, 3, 64, 64), 0.4)
    target = image + 0.002 * torch.randn(
        image.shape, generator=torch.Generator().manual_seed(0)
    )
    box = (slice(None), slice(None), slice(20, 40), slice(20, 40))
    target[box] = 0.1 if hidden else torch.tensor([0.8, 0.1, 0.1]).view(1, 3, 1, 1)
    weights = torch.ones_like(image[:, :1])
    if hidden:
        weights[box] = 0.0

    params = transform.params_from_target(image, target, weights)

    assert params.abs().max() < 0.02

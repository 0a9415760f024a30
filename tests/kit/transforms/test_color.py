import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from celstack.testing import check_transform
from celstack_kit.transforms.color import Color


def color(transform: Color, pixel: list[float], params: list[float]) -> list[float]:
    """Change one pixel."""
    images = torch.tensor(pixel).view(1, -1, 1, 1)
    return transform(images, torch.tensor([params])).flatten().tolist()


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Color())


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.4, 0.3, 0.4, 0.5]),  # red counts twice
        ([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.2, 0.6, 0.4, 0.5]),
        ([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.2, 0.3, 0.8, 0.5]),
        ([0.0, 0.0, 0.0, 0.1, 0.0, 0.0], [0.3, 0.3, 0.4, 0.5]),  # a little red is added
        ([0.0, 0.0, 0.0, 0.0, 0.1, 0.0], [0.2, 0.4, 0.4, 0.5]),
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.1], [0.2, 0.3, 0.5, 0.5]),
        ([-0.5, 0.0, 0.0, 0.1, 0.0, 0.0], [0.2, 0.3, 0.4, 0.5]),  # half, then plus: not minus
        ([1.0, 0.0, 0.0, 0.1, 0.0, 0.0], [0.5, 0.3, 0.4, 0.5]),  # the sum is not doubled
        ([9.0, 0.0, 0.0, 0.0, -0.5, 0.0], [1.01, -0.002, 0.4, 0.5]),  # clipped, but softly
    ],
)
def test_what_becomes_of_a_pixel(params, seen):
    assert color(Color(), [0.2, 0.3, 0.4, 0.5], params) == pytest.approx(seen, abs=1e-6)


def test_gray_images_have_one_gain_and_one_offset():
    transform = Color()
    transform.prepare(channels=1)

    assert transform.num_params == 2
    assert color(transform, [0.2, 0.5], [1.0, 0.3]) == pytest.approx([0.7, 0.5])


@given(st.lists(st.floats(-3.0, 3.0, width=32), min_size=6, max_size=6))
@settings(deadline=None, max_examples=25)
def test_pixels_go_their_own_ways(params):
    images = torch.rand(1, 4, 3, 4)
    row = torch.tensor([params])

    shifted = Color()(images.roll((1, 2), (2, 3)), row)

    assert torch.equal(shifted, Color()(images, row).roll((1, 2), (2, 3)))


def test_gradients_are_true_inside_and_beyond_the_clip():
    images = torch.rand(2, 4, 2, 2, dtype=torch.float64, requires_grad=True)
    params = torch.tensor([[0.1] * 6, [4.0, 4.0, 4.0, -9.0, 0.0, 9.0]], dtype=torch.float64)

    assert gradcheck(Color(), (images, params.requires_grad_()))

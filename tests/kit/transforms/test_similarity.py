import math

import kornia.geometry
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from celstack.testing import check_transform
from celstack_kit.transforms.similarity import Similarity


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Similarity())


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ([math.log(2), 0.0, 0.0, 0.0], [0.5, 0.0]),  # twice as big: half as far out
        ([0.0, math.pi / 2, 0.0, 0.0], [0.0, -1.0]),  # clockwise: its top is now here
        ([0.0, 0.0, 0.25, 0.0], [0.75, 0.0]),  # moved right: look further left
        ([0.0, 0.0, 0.0, 0.25], [1.0, -0.25]),  # moved down: look further up
        ([math.log(2), math.pi / 2, 0.5, 0.0], [0.0, -0.25]),  # all three, in order
    ],
)
def test_what_the_right_edge_of_the_canvas_sees(params, seen):
    right_edge = torch.tensor([[[1.0, 0.0]]])

    point = Similarity().pull(right_edge, torch.tensor([params]))

    torch.testing.assert_close(point, torch.tensor([[seen]]), atol=1e-6, rtol=0.0)


def test_a_quarter_turn_clockwise_takes_the_top_to_the_right():
    sprite = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])

    turned = Similarity()(sprite[None, None], torch.tensor([[0.0, math.pi / 2, 0.0, 0.0]]))

    expected = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(turned[0, 0], expected, atol=1e-6, rtol=0.0)


@pytest.mark.parametrize(("height", "width"), [(3, 7), (7, 3)])
def test_a_turn_does_not_shear_on_any_canvas(height, width):
    sprite = torch.zeros(1, 1, height, width)
    top, left = height // 2 - 1, width // 2 - 1
    corner = torch.tensor([[1.0, 0.2, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 0.8]])
    sprite[0, 0, top : top + 3, left : left + 3] = corner

    turned = Similarity()(sprite, torch.tensor([[0.0, math.pi / 2, 0.0, 0.0]]))

    expected = torch.zeros_like(sprite)
    expected[0, 0, top : top + 3, left : left + 3] = corner.rot90(-1)
    torch.testing.assert_close(turned, expected, atol=1e-6, rtol=0.0)


@given(st.integers(-3, 3), st.integers(-3, 3))
@settings(deadline=None, max_examples=25)
def test_whole_pixels_shift_the_picture_right_and_down(right, down):
    sprite = torch.zeros(1, 2, 6, 8)
    sprite[:, :, 2:4, 3:5] = torch.rand(2, 2, 2)
    pixel = 2 / 8  # of the longer side

    moved = Similarity()(sprite, torch.tensor([[0.0, 0.0, right * pixel, down * pixel]]))

    padded = torch.nn.functional.pad(sprite, [3, 3, 3, 3])
    expected = padded[:, :, 3 - down : 9 - down, 3 - right : 11 - right]
    torch.testing.assert_close(moved, expected, atol=1e-5, rtol=0.0)


def test_kornia_agrees():
    points = torch.rand(3, 7, 2, dtype=torch.float64) * 2 - 1
    params = torch.randn(3, 4, dtype=torch.float64)
    # Kornia turns anticlockwise, in degrees; its matrix places, where ours looks up.
    turn = kornia.geometry.angle_to_rotation_matrix(-params[:, 1].rad2deg())
    place = torch.eye(3, dtype=torch.float64).repeat(3, 1, 1)
    place[:, :2, :2] = turn * params[:, 0].exp()[:, None, None]
    place[:, :2, 2] = params[:, 2:]

    expected = kornia.geometry.transform_points(place.inverse(), points)

    torch.testing.assert_close(Similarity().pull(points, params), expected)


@pytest.mark.parametrize("log_scale", [-20.0, -89.0, -1e4, 1e4])
def test_no_scale_is_too_much(log_scale):
    params = torch.tensor([[log_scale, 0.1, 0.1, -0.1]], requires_grad=True)

    shown = Similarity()(torch.rand(1, 4, 5, 5), params)
    shown.sum().backward()

    assert shown.isfinite().all()
    assert params.grad.isfinite().all()


def test_gradients_are_true_on_both_sides_of_the_bound():
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = torch.tensor([[0.3, 0.5, 0.1, 0.2], [-9.0, 1.0, 0.1, 0.2]], dtype=torch.float64)

    assert gradcheck(Similarity().pull, (points, params.requires_grad_()))

import math

import kornia.geometry
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from celstack.testing import check_transform
from celstack_kit.transforms.position import Position


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Position())


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ([0.0, 0.0, 0.0], [1.0, 0.5]),  # at rest: half as big, so twice as far out
        ([math.log(3), 0.0, 0.0], [2.0, 1.0]),  # 1 + 3 times as far out
        ([0.0, 0.25, 0.0], [1.25, 0.5]),
        ([0.0, 0.0, 0.25], [1.0, 0.75]),
        ([math.log(3), 0.25, -0.25], [2.25, 0.75]),  # the shift is not shrunk
    ],
)
def test_what_a_point_right_and_below_the_center_sees(params, seen):
    point = Position().pull(torch.tensor([[[0.5, 0.25]]]), torch.tensor([params]))

    torch.testing.assert_close(point, torch.tensor([[seen]]), atol=1e-6, rtol=0.0)


def test_at_rest_a_sprite_covers_half_the_canvas_in_its_middle():
    shown = Position()(torch.ones(1, 1, 8, 8), torch.zeros(1, 3))

    middle = torch.zeros(8, 8)
    middle[2:6, 2:6] = 1.0
    torch.testing.assert_close(shown[0, 0], middle)


def test_a_positive_shift_looks_right_so_the_sprite_moves_left():
    shown = Position()(torch.ones(1, 1, 8, 8), torch.tensor([[0.0, 1.0, 0.0]]))

    assert shown[0, 0, 4].tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_it_never_exceeds_the_canvas():
    point = Position().pull(torch.tensor([[[0.5, 0.25]]]), torch.tensor([[-99.0, 0.0, 0.0]]))

    assert point.flatten().tolist() == [0.5, 0.25]


@pytest.mark.parametrize("log_shrink", [20.0, 89.0, 1e4, 1e30])
def test_no_scale_is_too_much(log_shrink):
    params = torch.tensor([[log_shrink, 0.1, -0.1]], requires_grad=True)

    # On an odd canvas the middle is a pixel's center: infinity times zero is no number.
    shown = Position()(torch.rand(1, 4, 5, 5), params)
    shown.sum().backward()

    assert shown.isfinite().all()
    assert params.grad.isfinite().all()


def test_kornia_agrees():
    points = torch.rand(3, 7, 2, dtype=torch.float64) * 2 - 1
    params = torch.randn(3, 3, dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64).repeat(3, 1, 1)
    matrix[:, 0, 0] = matrix[:, 1, 1] = 1 + params[:, 0].exp()
    matrix[:, :2, 2] = params[:, 1:]

    expected = kornia.geometry.transform_points(matrix, points)

    torch.testing.assert_close(Position().pull(points, params), expected)


@given(st.floats(-4, 4), st.floats(-2, 2), st.floats(-2, 2))
@settings(deadline=None, max_examples=25)
def test_shifts_add_up(log_shrink, right, down):
    points = torch.rand(1, 4, 2, dtype=torch.float64)
    without = torch.tensor([[log_shrink, 0.0, 0.0]], dtype=torch.float64)
    shift = torch.tensor([[0.0, right, down]], dtype=torch.float64)

    moved = Position().pull(points, without + shift)

    torch.testing.assert_close(moved, Position().pull(points, without) + shift[:, 1:])


def test_gradients_are_true_on_both_sides_of_the_bound():
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = torch.tensor([[0.3, 0.1, 0.2], [9.0, 0.1, 0.2]], dtype=torch.float64)

    assert gradcheck(Position().pull, (points, params.requires_grad_()))

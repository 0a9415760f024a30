import kornia.geometry
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from celstack.testing import check_transform
from celstack_kit.transforms.affine import Affine


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Affine())


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.25]),  # at rest: itself
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.25]),  # x from x
        ([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.75, 0.25]),  # x from y
        ([0.0, 0.0, 0.1, 0.0, 0.0, 0.0], [0.6, 0.25]),  # x shifted
        ([0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.5, 0.75]),  # y from x
        ([0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.5, 0.5]),  # y from y
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.1], [0.5, 0.35]),  # y shifted
        ([1.0, 0.0, 0.1, 0.0, 1.0, -0.1], [1.1, 0.4]),  # stretched before shifted
    ],
)
def test_what_a_point_right_and_below_the_center_sees(params, seen):
    point = Affine().pull(torch.tensor([[[0.5, 0.25]]]), torch.tensor([params]))

    torch.testing.assert_close(point, torch.tensor([[seen]]), atol=1e-6, rtol=0.0)


def test_a_positive_shift_looks_right_and_down_so_the_sprite_moves_left_and_up():
    sprite = torch.arange(16.0).view(1, 1, 4, 4)
    pixel = 0.5

    moved = Affine()(sprite, torch.tensor([[0.0, 0.0, pixel, 0.0, 0.0, 2 * pixel]]))

    assert moved[0, 0].tolist() == [[9, 10, 11, 0], [13, 14, 15, 0], [0] * 4, [0] * 4]


def test_kornia_warps_the_same_picture():
    images = torch.rand(3, 4, 6, 6, dtype=torch.float64)
    params = 0.3 * torch.randn(3, 6, dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64).repeat(3, 1, 1)
    matrix[:, :2] += params.view(3, 2, 3)

    expected = kornia.geometry.homography_warp(images, matrix, (6, 6), align_corners=False)

    torch.testing.assert_close(Affine()(images, params), expected, atol=1e-6, rtol=0.0)


def test_kornia_moves_the_same_points():
    points = torch.randn(3, 7, 2, dtype=torch.float64)
    params = torch.randn(3, 6, dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64).repeat(3, 1, 1)
    matrix[:, :2] += params.view(3, 2, 3)

    expected = kornia.geometry.transform_points(matrix, points)

    torch.testing.assert_close(Affine().pull(points, params), expected)


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6), st.floats(-2, 2), st.floats(-2, 2))
@settings(deadline=None, max_examples=25)
def test_shifts_add_up(params, right, down):
    points = torch.rand(1, 4, 2, dtype=torch.float64)
    row = torch.tensor([params], dtype=torch.float64)
    shift = torch.tensor([[0, 0, right, 0, 0, down]], dtype=torch.float64)

    moved = Affine().pull(points, row + shift)

    torch.testing.assert_close(moved, Affine().pull(points, row) + shift[:, 2::3])


def test_gradients_are_true():
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)

    assert gradcheck(Affine().pull, (points, params))

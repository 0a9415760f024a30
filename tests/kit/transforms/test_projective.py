import kornia.geometry
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from celstack.geometry.sampling import pixel_centers
from celstack.testing import check_transform
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.projective import Projective


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Projective())


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.25]),  # at rest: itself
        ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.25]),  # x from x
        ([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.75, 0.25]),  # x from y
        ([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.6, 0.25]),  # x shifted
        ([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.75]),  # y from x
        ([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.5]),  # y from y
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0], [0.5, 0.35]),  # y shifted
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1 / 3, 1 / 6]),  # right is far
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.4, 0.2]),  # below is far
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.25, 0.125]),  # all is far
        ([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.125]),  # the shift as well
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0], [-0.5, -0.25]),  # behind: mirrored
    ],
)
def test_what_a_point_right_and_below_the_center_sees(params, seen):
    point = Projective().pull(torch.tensor([[[0.5, 0.25]]]), torch.tensor([params]))

    torch.testing.assert_close(point, torch.tensor([[seen]]), atol=1e-6, rtol=0.0)


def test_kornia_warps_the_same_picture():
    images = torch.rand(3, 4, 6, 6, dtype=torch.float64)
    params = 0.2 * torch.randn(3, 9, dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64) + params.view(3, 3, 3)

    expected = kornia.geometry.homography_warp(images, matrix, (6, 6), align_corners=False)

    torch.testing.assert_close(Projective()(images, params), expected, atol=1e-6, rtol=0.0)


def test_kornia_moves_the_same_points():
    points = torch.rand(3, 7, 2, dtype=torch.float64) * 2 - 1
    params = 0.2 * torch.randn(3, 9, dtype=torch.float64)
    matrix = torch.eye(3, dtype=torch.float64) + params.view(3, 3, 3)

    expected = kornia.geometry.transform_points(matrix, points)

    torch.testing.assert_close(Projective().pull(points, params), expected)


@pytest.mark.parametrize(("tilt", "side"), [(-1.0, 1), (-0.9999, 1), (-1.0001, -1)])
def test_the_horizon_looks_far_outside_on_its_own_side(tilt, side):
    params = torch.tensor([[0.0] * 6 + [tilt, 0.0, 0.0]], requires_grad=True)

    point = Projective().pull(torch.tensor([[[1.0, 0.5]]]), params)
    point.sum().backward()

    assert 100 < side * point[0, 0, 0] < torch.inf
    assert params.grad.isfinite().all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 100.0, 1e6]))
@settings(deadline=None, max_examples=50)
def test_nothing_is_ever_infinite(seed, size):
    generator = torch.Generator().manual_seed(seed)
    params = (size * torch.randn(2, 9, generator=generator)).requires_grad_()
    images = torch.rand(2, 2, 5, 5, generator=generator)

    shown = Projective()(images, params)
    shown.sum().backward()

    assert shown.isfinite().all()
    assert params.grad.isfinite().all()


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6))
@settings(deadline=None, max_examples=25)
def test_without_perspective_it_is_affine(params):
    row = torch.tensor([params], dtype=torch.float64)
    points = pixel_centers(3, 5, like=row)[None]

    moved = Projective().pull(points, torch.cat([row, torch.zeros(1, 3)], dim=1))

    torch.testing.assert_close(moved, Affine().pull(points, row))


@given(st.floats(-2, 2), st.floats(-2, 2))
@settings(deadline=None, max_examples=25)
def test_a_shift_of_the_sprite_shifts_what_is_seen(right, down):
    params = torch.tensor([[0.1, 0.2, 0.3, -0.1, 0.2, 0.1, 0.2, -0.3, 0.1]]).double()
    matrix = torch.eye(3, dtype=torch.float64) + params.view(3, 3)
    shift = torch.eye(3, dtype=torch.float64)
    shift[:2, 2] = torch.tensor([right, down])
    points = pixel_centers(3, 5, like=params)[None]

    shifted = (shift @ matrix - torch.eye(3)).view(1, 9)

    expected = Projective().pull(points, params) + shift[:2, 2]
    torch.testing.assert_close(Projective().pull(points, shifted), expected)


def test_gradients_are_true():
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = (0.3 * torch.randn(2, 9, dtype=torch.float64)).requires_grad_()

    assert gradcheck(Projective().pull, (points, params))

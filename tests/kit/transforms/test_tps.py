import kornia.geometry
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RBFInterpolator
from torch import Tensor
from torch.autograd import gradcheck

from celstack import CelstackError
from celstack.geometry.sampling import pixel_centers
from celstack.testing import check_transform
from celstack_kit.transforms.tps import Tps


def controls(side: int) -> Tensor:
    """List the control points, row by row from the top left."""
    along = torch.linspace(-1, 1, side, dtype=torch.float64)
    return torch.tensor([[x, y] for y in along for x in along], dtype=torch.float64)


def as_params(displacement: Tensor) -> Tensor:
    """Put what the controls do (n, c, 2) in order: all x, then all y."""
    return displacement.mT.flatten(1)


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Tps())
    check_transform(Tps(points=2))


def test_it_has_two_parameters_for_each_control():
    assert Tps().num_params == 32
    assert Tps(points=3).num_params == 18


def test_one_control_is_not_enough():
    with pytest.raises(CelstackError, match=r"Tps\(points=...\)"):
        Tps(points=1)


@pytest.mark.parametrize(
    ("param", "place", "seen"),
    [
        (1, [1.0, -1.0], [1.5, -1.0]),  # the second control is the top right one, first its x
        (2, [-1.0, 1.0], [-0.5, 1.0]),  # the third one is the bottom left one
        (5, [1.0, -1.0], [1.0, -0.5]),  # the y of all controls come after their x
        (6, [-1.0, 1.0], [-1.0, 1.5]),
        (1, [0.0, 0.0], [0.125, 0.0]),  # the center follows each of four corners by a quarter
        (1, [-1.0, -1.0], [-1.0, -1.0]),  # the other controls stay
    ],
)
def test_what_one_of_four_corners_does(param, place, seen):
    params = torch.zeros(1, 8)
    params[0, param] = 0.5

    point = Tps(points=2).pull(torch.tensor([[place]]), params)

    torch.testing.assert_close(point, torch.tensor([[seen]]), atol=1e-6, rtol=0.0)


def test_a_positive_parameter_looks_right_so_the_sprite_moves_left():
    sprite = torch.arange(16.0).view(1, 1, 4, 4)
    params = torch.zeros(1, 2, 16)
    params[:, 0] = 0.5  # one pixel

    moved = Tps()(sprite, params.flatten(1))

    expected = torch.nn.functional.pad(sprite[..., 1:], [0, 1])
    torch.testing.assert_close(moved, expected, atol=1e-4, rtol=0.0)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=25)
def test_controls_look_exactly_where_they_are_told(side, seed):
    generator = torch.Generator().manual_seed(seed)
    displacement = torch.randn(2, side**2, 2, dtype=torch.float64, generator=generator)
    points = controls(side).expand(2, -1, -1)

    seen = Tps(points=side).double().pull(points, as_params(displacement))

    torch.testing.assert_close(seen, points + displacement, atol=1e-5, rtol=0.0)


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6))
@settings(deadline=None, max_examples=25)
def test_controls_that_move_as_a_plane_bend_nothing(coefficients):
    matrix = torch.tensor(coefficients, dtype=torch.float64).view(2, 3)
    displacement = controls(4) @ matrix[:, :2].mT + matrix[:, 2]
    points = 3 * torch.rand(1, 9, 2, dtype=torch.float64) - 1.5

    seen = Tps().double().pull(points, as_params(displacement[None]))

    expected = points + points @ matrix[:, :2].mT + matrix[:, 2]
    torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0.0)


def test_scipy_bends_the_same_way():
    displacement = torch.randn(16, 2, dtype=torch.float64)
    points = 3 * torch.rand(50, 2, dtype=torch.float64) - 1.5

    seen = Tps().double().pull(points[None], as_params(displacement[None]))

    spline = RBFInterpolator(controls(4), displacement, kernel="thin_plate_spline", degree=1)
    expected = points + torch.from_numpy(spline(points.numpy()))
    torch.testing.assert_close(seen[0], expected, atol=1e-5, rtol=0.0)


def test_kornia_begins_to_bend_the_same_way():
    # Kornia centers its kernels where controls go to, ours are where controls come from:
    # the two agree in the first order, and ours has no other.
    little = 1e-5
    centers = controls(4)[None]
    displacement = torch.randn(1, 16, 2, dtype=torch.float64)
    points = 2 * torch.rand(1, 20, 2, dtype=torch.float64) - 1
    goal = centers + little * displacement

    weights = kornia.geometry.get_tps_transform(centers, goal)
    expected = kornia.geometry.warp_points_tps(points, goal, *weights)

    seen = Tps().double().pull(points, as_params(displacement))
    torch.testing.assert_close(seen - points, (expected - points) / little, atol=1e-3, rtol=0)


def test_kornia_evaluates_the_same_spline():
    displacement = torch.randn(2, 16, 2, dtype=torch.float64)
    points = 3 * torch.rand(2, 20, 2, dtype=torch.float64) - 1.5
    warp = Tps().double()

    weights = warp.spline @ displacement
    bend = kornia.geometry.warp_points_tps(
        points, controls(4).expand(2, -1, -1), weights[:, :-3], weights[:, -3:]
    )

    torch.testing.assert_close(warp.pull(points, as_params(displacement)), points + bend)


def test_a_shared_canvas_gives_what_a_canvas_each_would_give():
    params = torch.randn(3, 32)
    shared = pixel_centers(4, 6, like=params).expand(3, -1, -1)

    torch.testing.assert_close(
        Tps().pull(shared, params), Tps().pull(shared.contiguous(), params)
    )


def test_gradients_come_to_each_canvas_that_shares_its_memory():
    points = torch.rand(1, 3, 2).expand(2, -1, -1).requires_grad_()

    Tps().pull(points, torch.randn(1, 32).expand(2, -1)).sum().backward()

    torch.testing.assert_close(points.grad[0], points.grad[1])


def test_it_takes_an_empty_batch():
    points = torch.zeros(1, 6, 2).expand(0, -1, -1)

    assert Tps().pull(points, torch.zeros(0, 32)).shape == (0, 6, 2)


@given(st.floats(-1, 1), st.floats(-1, 1))
@settings(deadline=None, max_examples=25)
def test_a_shift_of_all_controls_shifts_what_is_seen(right, down):
    params = torch.randn(1, 2, 16, dtype=torch.float64)
    points = pixel_centers(3, 4, like=params)[None]
    shift = torch.tensor([right, down], dtype=torch.float64)
    warp = Tps().double()

    shifted = warp.pull(points, (params + shift[:, None]).flatten(1))

    expected = warp.pull(points, params.flatten(1)) + shift
    torch.testing.assert_close(shifted, expected, atol=1e-5, rtol=0.0)


def test_gradients_are_true_for_canvases_of_their_own():
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = torch.randn(2, 32, dtype=torch.float64, requires_grad=True)

    assert gradcheck(Tps().double().pull, (points, params))


def test_gradients_are_true_for_a_shared_canvas():
    points = torch.rand(1, 3, 2, dtype=torch.float64).expand(2, -1, -1)
    params = torch.randn(2, 32, dtype=torch.float64, requires_grad=True)

    assert gradcheck(lambda given: Tps().double().pull(points, given), (params,))


def test_gradients_are_numbers_at_the_controls_themselves():
    points = controls(4)[None].requires_grad_()

    Tps().double().pull(points, torch.randn(1, 32).double()).sum().backward()

    assert points.grad.isfinite().all()


def test_the_constant_matrix_is_no_part_of_a_checkpoint():
    assert Tps().state_dict() == {}

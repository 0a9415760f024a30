import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from celstack.geometry.sampling import extent, pixel_centers, sample_canvas


def look(images: Tensor, canvas: tuple[int, int], outside: str = "zeros") -> Tensor:
    """Show images on a canvas with nothing in between."""
    points = pixel_centers(*canvas, like=images).expand(len(images), -1, -1)
    return sample_canvas(images, points, canvas, outside=outside)


@pytest.mark.parametrize(
    ("height", "width", "reach"),
    [(4, 4, (1.0, 1.0)), (2, 4, (1.0, 0.5)), (4, 1, (0.25, 1.0))],
)
def test_the_longer_side_reaches_from_minus_one_to_one(height, width, reach):
    assert extent(height, width) == reach


def test_points_are_pixel_centres_row_by_row_x_first():
    points = pixel_centers(2, 4, like=torch.zeros(()))

    top = [[-0.75, -0.25], [-0.25, -0.25], [0.25, -0.25], [0.75, -0.25]]
    bottom = [[x, 0.25] for x, _ in top]
    assert points.tolist() == top + bottom


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from(["zeros", "border"]))
@settings(deadline=None, max_examples=60)
def test_the_rest_pose_is_exact_up_to_the_border(height, width, outside):
    images = torch.randint(0, 2, (1, 1, height, width)).double()

    shown = look(images, (height, width), outside)

    torch.testing.assert_close(shown, images, atol=1e-12, rtol=0.0)


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from(["zeros", "border"]))
@settings(deadline=None, max_examples=60)
def test_in_single_precision_the_rest_pose_is_as_exact_as_coordinates_are(
    height, width, outside
):
    images = torch.randint(0, 2, (1, 1, height, width)).float()

    shown = look(images, (height, width), outside)

    # Coordinates have last bits of 1.2e-7, stretched over half the pixels of a side.
    rounding = 2.4e-7 * max(height, width)
    torch.testing.assert_close(shown, images, atol=rounding, rtol=0.0)


@pytest.mark.parametrize(("height", "width"), [(5, 8), (8, 5), (3, 3)])
def test_a_point_sees_the_pixel_it_is_in_x_first(height, width):
    images = torch.arange(float(height * width)).view(1, 1, height, width)
    pixel = 2 / max(height, width)
    right_of_the_middle = torch.tensor([[[pixel, 0.0]]])
    below_the_middle = torch.tensor([[[0.0, pixel]]])

    middle = (height * width - 1) / 2

    right = sample_canvas(images, right_of_the_middle, (1, 1), outside="zeros")
    below = sample_canvas(images, below_the_middle, (1, 1), outside="zeros")
    assert right.item() == pytest.approx(middle + 1, abs=1e-4)
    assert below.item() == pytest.approx(middle + width, abs=1e-4)


@pytest.mark.parametrize(("height", "width"), [(3, 7), (7, 3), (4, 6)])
def test_a_quarter_turn_of_the_points_turns_without_shearing(height, width):
    images = torch.zeros(1, 1, height, width)
    top, left = (height - 2) // 2, (width - 2) // 2
    size = 2 + height % 2
    block = torch.rand(size, size)
    images[0, 0, top : top + size, left : left + size] = block

    x, y = pixel_centers(height, width, like=images).unbind(-1)
    turned = sample_canvas(
        images, torch.stack([y, -x], -1)[None], (height, width), outside="zeros"
    )

    expected = torch.zeros_like(images)
    expected[0, 0, top : top + size, left : left + size] = block.rot90(-1)
    torch.testing.assert_close(turned, expected, atol=1e-6, rtol=0.0)


def test_a_smaller_sprite_is_stretched_to_the_longer_side():
    shown = look(torch.tensor([[[[0.0, 1.0]]]]), (1, 4), "border")

    assert shown.flatten().tolist() == [0.0, 0.25, 0.75, 1.0]


def test_a_larger_sprite_is_shrunk():
    sprite = torch.arange(16.0).view(1, 1, 4, 4)

    # The canvas's pixel centres lie where four pixels of the sprite meet.
    assert look(sprite, (2, 2))[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]


def test_a_wide_sprite_on_a_square_canvas_keeps_its_shape():
    sprite = torch.arange(1.0, 9.0).view(1, 1, 2, 4)

    shown = look(sprite, (4, 4))

    rows = [[0.0] * 4, [1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.0] * 4]
    assert shown[0, 0].tolist() == rows


def test_a_square_sprite_on_a_wide_canvas_fills_its_width():
    sprite = torch.arange(16.0).view(1, 1, 4, 4)

    shown = look(sprite, (2, 4))

    assert shown[0, 0].tolist() == sprite[0, 0, 1:3].tolist()


@pytest.mark.parametrize(("outside", "seen"), [("zeros", 0.0), ("border", 1.0)])
def test_outside_a_sprite_is_nothing_outside_a_background_its_border(outside, seen):
    far = torch.tensor([[[3.0, 0.0], [0.0, -9.0], [1e9, 1e9]]])

    shown = sample_canvas(torch.ones(1, 1, 4, 4), far, (1, 3), outside=outside)

    assert shown.flatten().tolist() == [seen] * 3


def test_the_rim_fades_over_one_pixel():
    # A row of four pixels, half a unit each: its last centre is at 0.75, the next at 1.25.
    along = torch.tensor([[[0.75, 0.0], [1.0, 0.0], [1.125, 0.0], [1.25, 0.0]]])

    shown = sample_canvas(torch.ones(1, 1, 4, 4), along, (1, 4), outside="zeros")

    assert shown.flatten().tolist() == [1.0, 0.5, 0.25, 0.0]

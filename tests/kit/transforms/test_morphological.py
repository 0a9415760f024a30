import kornia.morphology
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn.functional import pad

from celstack import CelstackError
from celstack.testing import check_transform
from celstack_kit.transforms.morphological import Morphological

ALL, NONE = 1e9, -1e9


def params(alpha: float, kernel: Tensor) -> Tensor:
    """Count the neighbors where the kernel is 1, and no others."""
    beta = torch.where(kernel.flatten() > 0, ALL, NONE)
    return torch.cat([torch.tensor([alpha]), beta])[None]


def plainly(image: Tensor, alpha: float, beta: Tensor) -> Tensor:
    """Transcribe the weighted mean for one gray image, pixel by pixel."""
    rest = torch.full((3, 3), -5.0, dtype=image.dtype)
    rest[1, 1] = 5.0
    kernel = (beta.view(3, 3) + rest).sigmoid()
    height, width = image.shape
    result = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            total = weighted = 0.0
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    y = min(max(row + down, 0), height - 1)
                    x = min(max(column + right, 0), width - 1)
                    weight = (alpha * image[y, x]).exp() * kernel[down + 1, right + 1]
                    total, weighted = total + weight, weighted + weight * image[y, x]
            result[row, column] = weighted / total
    return result


def test_it_keeps_the_promises_of_a_transform():
    check_transform(Morphological())
    check_transform(Morphological(size=5))


def test_it_has_a_parameter_for_each_neighbor_and_one_for_all():
    assert Morphological().num_params == 10
    assert Morphological(size=5).num_params == 26


def test_a_window_has_a_center():
    with pytest.raises(CelstackError, match=r"Morphological\(size=...\)"):
        Morphological(size=4)


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from([3, 5, 7]))
@settings(deadline=None, max_examples=25)
def test_at_rest_nothing_changes_at_all(height, width, size):
    images = torch.randn(2, 4, height, width)
    transform = Morphological(size=size)

    assert torch.equal(transform(images, torch.zeros(2, transform.num_params)), images)


def test_at_rest_every_parameter_has_a_gradient():
    rest = torch.zeros(1, 10, requires_grad=True)

    Morphological()(torch.rand(1, 4, 5, 5), rest).square().sum().backward()

    assert (rest.grad != 0).all()


@pytest.mark.parametrize("alpha", [-3.0, 0.0, 0.5, 4.0])
def test_away_from_rest_it_is_the_mean_with_those_weights(alpha):
    image = torch.rand(4, 5, dtype=torch.float64)
    beta = 4 * torch.randn(9, dtype=torch.float64) + 4
    row = torch.cat([torch.tensor([alpha], dtype=torch.float64), beta])[None]

    changed = Morphological().double()(image[None, None], row)

    torch.testing.assert_close(changed[0, 0], plainly(image, alpha, beta))


@pytest.mark.parametrize(
    ("neighbor", "seen"),
    [
        (0, [[0, 0, 1], [0, 0, 1], [3, 3, 4]]),  # each pixel becomes its upper left neighbor
        (1, [[0, 1, 2], [0, 1, 2], [3, 4, 5]]),  # the one above
        (3, [[0, 0, 1], [3, 3, 4], [6, 6, 7]]),  # the one on its left
        (4, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),  # itself
        (8, [[4, 5, 5], [7, 8, 8], [7, 8, 8]]),  # the lower right one; borders go on
    ],
)
def test_which_neighbor_a_parameter_is_for(neighbor, seen):
    kernel = torch.zeros(9)
    kernel[neighbor] = 1.0

    changed = Morphological()(torch.arange(9.0).view(1, 1, 3, 3), params(0.0, kernel))

    torch.testing.assert_close(changed[0, 0], torch.tensor(seen, dtype=torch.float32))


def test_positive_alpha_makes_a_dot_grow_and_negative_makes_it_vanish():
    dot = torch.zeros(1, 2, 5, 5)
    dot[..., 2, 2] = 1.0

    grown = Morphological()(dot, params(50.0, torch.ones(9)))
    gone = Morphological()(dot, params(-50.0, torch.ones(9)))

    torch.testing.assert_close(grown, pad(torch.ones(1, 2, 3, 3), [1, 1, 1, 1]))
    torch.testing.assert_close(gone, torch.zeros_like(dot))


@pytest.mark.parametrize("size", [3, 5])
def test_kornia_agrees_on_what_the_limits_are(size):
    images = torch.rand(2, 4, 6, 7)
    kernel = (torch.rand(size, size) > 0.4).float()
    kernel[size // 2, size // 2] = 1.0
    around = size // 2
    padded = pad(images, [around] * 4, mode="replicate")
    transform = Morphological(size=size)

    most = transform(images, params(1e6, kernel).expand(2, -1))
    least = transform(images, params(-1e6, kernel).expand(2, -1))

    # Kornia mirrors the kernel of a dilation.
    inside = (..., slice(around, -around), slice(around, -around))
    torch.testing.assert_close(
        most, kornia.morphology.dilation(padded, kernel.flip(0, 1))[inside]
    )
    torch.testing.assert_close(least, kornia.morphology.erosion(padded, kernel)[inside])


@pytest.mark.parametrize("alpha", [-1e30, -1e4, 1e4, 1e30])
@pytest.mark.parametrize("beta", [-1e4, 1e4])
def test_no_parameter_is_too_much(alpha, beta):
    row = torch.full((1, 10), beta)
    row[0, 0] = alpha
    row.requires_grad_()
    images = torch.rand(1, 4, 5, 5, requires_grad=True)

    changed = Morphological()(images, row)
    changed.sum().backward()

    assert changed.isfinite().all()
    assert row.grad.isfinite().all()
    assert images.grad.isfinite().all()


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 8.0))
@settings(deadline=None, max_examples=25)
def test_a_shifted_sprite_is_changed_alike(seed, strength):
    generator = torch.Generator().manual_seed(seed)
    sprite = pad(torch.rand(1, 2, 3, 3, generator=generator), [3, 3, 3, 3])
    row = strength * torch.randn(1, 10, generator=generator)

    shifted = Morphological()(sprite.roll((1, -1), (2, 3)), row)

    expected = Morphological()(sprite, row).roll((1, -1), (2, 3))
    torch.testing.assert_close(shifted, expected)


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0])
def test_gradients_are_true(strength):
    images = torch.rand(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    row = (strength * torch.randn(2, 10, dtype=torch.float64)).requires_grad_()

    assert gradcheck(Morphological().double(), (images, row))

"""A stack whose layers are exchanged one at a time agrees with Eq. 2."""

import pytest
import torch

import naive
from celstack.geometry.windows import Windows
from celstack.interfaces.compositor import Compositor
from celstack.model.candidates import Candidates
from celstack.model.layer_stack import LayerStack
from celstack_kit.compositors.ordered import Ordered

B, L, C, H, W = 3, 4, 2, 3, 5
N = H * W
EVERYWHERE = Windows.whole((H, W), B)
ALL = [EVERYWHERE] * L


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def any_occlusion():
    lower = torch.rand(B, L, L).double().tril(-1)
    return lower + (1 - lower.mT).triu(1)


def any_layers():
    return torch.rand(B, L, C + 1, H, W).double(), torch.rand(B, C, H, W).double()


def stacked(layers, backdrop, occlusion, order=range(L)):
    stack = LayerStack(backdrop, occlusion, ALL)
    stack.begin_sweep()
    for layer in order:
        put(stack, layer, layers)
    return stack


def put(stack, layer, layers):
    alpha = layers[:, layer, -1]
    stack.put(layer, layers[:, layer, :-1] * alpha[:, None], alpha)


def candidates_of(shown, windows):
    return Candidates(windows, shown[:, :, :-1] * shown[:, :, -1:], shown[:, :, -1])


def test_compose_is_equation_2():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()

    image, visible = Compositor.compose(Ordered(layers=L), layers, backdrop, occlusion)

    for b in range(B):
        expected = naive.composite(layers[b], backdrop[b], occlusion[b])
        torch.testing.assert_close(image[b], expected)
    assert visible.shape == (B, L, H, W)


def test_ordered_is_equation_1_and_equation_2_with_a_triangle():
    layers, backdrop = any_layers()
    compositor = Ordered(layers=L)
    occlusion = compositor.occlusion(torch.zeros(B, 0).double(), training=True)

    image, visible = compositor.compose(layers, backdrop, occlusion)

    _, generally = Compositor.compose(compositor, layers, backdrop, occlusion)
    torch.testing.assert_close(visible, generally)
    for b in range(B):
        torch.testing.assert_close(image[b], naive.recursive(layers[b], backdrop[b]))
        torch.testing.assert_close(
            image[b], naive.composite(layers[b], backdrop[b], occlusion[b])
        )


@pytest.mark.parametrize("layer", range(L))
@pytest.mark.parametrize("sweeps", [1, 2])
def test_an_exchanged_layer_gives_the_image_that_equation_2_gives(layer, sweeps):
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    stack = stacked(layers, backdrop, occlusion)
    if sweeps == 1:
        stack = LayerStack(backdrop, occlusion, ALL)
        layers[:, layer + 1 :] = 0.0
    stack.begin_sweep()
    for earlier in range(layer):
        put(stack, earlier, layers)

    without, hidden, left = stack.affine_terms(layer)

    new = torch.rand(B, C + 1, H, W).double()
    alpha, colour = new[:, -1:], new[:, :-1]
    image = without + alpha * (left[:, None] * colour - hidden)
    layers[:, layer] = new
    for b in range(B):
        expected = naive.composite(layers[b], backdrop[b], occlusion[b])
        torch.testing.assert_close(image[b], expected)


def test_gains_are_differences_of_summed_squared_errors():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, H, W).double()
    stack = stacked(layers, backdrop, occlusion)
    stack.begin_sweep()
    candidates = torch.rand(B, 6, C + 1, H, W).double()

    gains = stack.gains(0, images, candidates_of(candidates, EVERYWHERE))

    for b in range(B):
        layers[b, 0] = 0.0
        empty = naive.error(images[b], layers[b], backdrop[b], occlusion[b])
        for k in range(6):
            layers[b, 0] = candidates[b, k]
            error = naive.error(images[b], layers[b], backdrop[b], occlusion[b])
            torch.testing.assert_close(gains[b, k], (empty - error) * C * N)


def test_a_window_is_as_good_as_the_canvas_where_nothing_is_outside_it():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, H, W).double()
    small = torch.rand(B, 2, C + 1, 2, 3).double()
    window = Windows((H, W), 2, 3, tops=[0, 1, 1], lefts=[2, 0, 1])
    large = window.spread(small.flatten(1, 2)).view(B, 2, C + 1, H, W)
    layers[:, 0] = large[:, 0]
    windowed, whole = (
        LayerStack(backdrop, occlusion, [window, *ALL[1:]]),
        LayerStack(backdrop, occlusion, ALL),
    )
    for stack, first in (windowed, small[:, 0]), (whole, large[:, 0]):
        stack.begin_sweep()
        stack.put(0, first[:, :-1] * first[:, -1:], first[:, -1])
        for layer in range(1, L):
            put(stack, layer, layers)
        stack.begin_sweep()

    gains = windowed.gains(0, images, candidates_of(small, window))

    torch.testing.assert_close(gains, whole.gains(0, images, candidates_of(large, EVERYWHERE)))
    torch.testing.assert_close(windowed.error(images), whole.error(images))


def test_the_error_of_a_stack_is_that_of_its_composite():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, H, W).double()

    error = stacked(layers, backdrop, occlusion).error(images)

    for b in range(B):
        expected = naive.error(images[b], layers[b], backdrop[b], occlusion[b]) * C * N
        torch.testing.assert_close(error[b], expected)


def test_a_layer_that_is_exchanged_leaves_nothing_behind():
    (_, backdrop), occlusion = any_layers(), any_occlusion()
    windows = [Windows((H, W), 2, 3, tops=[0] * B, lefts=[1] * B), *ALL[1:]]
    again, once = (LayerStack(backdrop, occlusion, windows) for _ in range(2))
    for stack in (again, once):
        stack.begin_sweep()
    again.put(0, torch.rand(B, C, 2, 3).double(), torch.rand(B, 2, 3).double())
    again.begin_sweep()

    new = torch.rand(B, C, 2, 3).double(), torch.rand(B, 2, 3).double()
    for stack in (again, once):
        stack.put(0, *new)

    images = torch.rand(B, C, H, W).double()
    torch.testing.assert_close(again.error(images), once.error(images))

"""A stack whose layers are exchanged one at a time agrees with Eq. 2."""

import pytest
import torch

import naive
from celstack.candidates import Candidates
from celstack.interfaces.compositor import Compositor
from celstack.stack import Stack
from celstack_kit.compositors.ordered import Ordered

B, L, C, H, W = 3, 4, 2, 3, 5
N = H * W


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def any_occlusion():
    lower = torch.rand(B, L, L).double().tril(-1)
    return lower + (1 - lower.mT).triu(1)


def any_layers():
    return torch.rand(B, L, C + 1, H, W).double(), torch.rand(B, C, H, W).double()


def stacked(layers, backdrop, occlusion, order=range(L)):
    stack = Stack(backdrop.flatten(2), occlusion)
    everything = torch.arange(N).expand(B, -1)
    stack.begin_sweep()
    for layer in order:
        colour, alpha = layers[:, layer, :-1].flatten(2), layers[:, layer, -1].flatten(1)
        stack.put(layer, colour, alpha, everything)
    return stack


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
        stack = Stack(backdrop.flatten(2), occlusion)
        layers[:, layer + 1 :] = 0.0
    stack.begin_sweep()
    everything = torch.arange(N).expand(B, -1)
    for earlier in range(layer):
        changed = layers[:, earlier]
        stack.put(earlier, changed[:, :-1].flatten(2), changed[:, -1].flatten(1), everything)

    without, hidden, left = stack.around(layer, everything)

    new = torch.rand(B, C + 1, H, W).double()
    alpha, colour = new[:, -1:].flatten(2), new[:, :-1].flatten(2)
    image = without + alpha * (left[:, None] * colour - hidden)
    layers[:, layer] = new
    for b in range(B):
        expected = naive.composite(layers[b], backdrop[b], occlusion[b])
        torch.testing.assert_close(image[b].view(C, H, W), expected)


def test_gains_are_differences_of_summed_squared_errors():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, H, W).double()
    stack = stacked(layers, backdrop, occlusion)
    stack.begin_sweep()
    candidates = torch.rand(B, 6, C + 1, N).double()
    everything = torch.arange(N).expand(B, -1)

    shown = Candidates(everything, candidates[:, :, :-1], candidates[:, :, -1])
    gains = stack.gains(0, images.flatten(2), shown)

    for b in range(B):
        layers[b, 0] = 0.0
        empty = naive.error(images[b], layers[b], backdrop[b], occlusion[b])
        for k in range(6):
            layers[b, 0] = candidates[b, k].view(C + 1, H, W)
            error = naive.error(images[b], layers[b], backdrop[b], occlusion[b])
            torch.testing.assert_close(gains[b, k], (empty - error) * C * N)


def test_a_window_is_as_good_as_the_canvas_where_nothing_is_outside_it():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, N).double()
    stack = stacked(layers, backdrop, occlusion)
    stack.begin_sweep()
    candidates = torch.zeros(B, 2, C + 1, N).double()
    window = torch.tensor([[3, 4, 7], [0, 1, 2], [9, 10, 14]])
    small = torch.rand(B, 2, C + 1, 3).double()
    candidates.scatter_(3, window[:, None, None].expand(-1, 2, C + 1, -1), small)
    everything = torch.arange(N).expand(B, -1)

    part = Candidates(window, small[:, :, :-1], small[:, :, -1])
    windowed = stack.gains(0, images, part)

    all_of_it = Candidates(everything, candidates[:, :, :-1], candidates[:, :, -1])
    whole = stack.gains(0, images, all_of_it)
    torch.testing.assert_close(windowed, whole)


def test_the_error_of_a_stack_is_that_of_its_composite():
    (layers, backdrop), occlusion = any_layers(), any_occlusion()
    images = torch.rand(B, C, H, W).double()

    error = stacked(layers, backdrop, occlusion).error(images.flatten(2))

    for b in range(B):
        expected = naive.error(images[b], layers[b], backdrop[b], occlusion[b]) * C * N
        torch.testing.assert_close(error[b], expected)

"""The composite in windows is Eq. 2, and its gradient is that of Eq. 2."""

import pytest
import torch
from torch.autograd import gradcheck

from celstack.composite import Layerwise, composite
from celstack.interfaces.compositor import Compositor
from celstack.rowwise import Rowwise
from celstack.windows import Windows
from celstack_kit.compositors.ordered import Ordered

B, L, C, H, W = 3, 4, 2, 5, 6


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def windows_of(height, width):
    return [
        Windows(
            (H, W),
            height,
            width,
            torch.randint(H - height + 1, (B,)).tolist(),
            torch.randint(W - width + 1, (B,)).tolist(),
        )
        for _ in range(L)
    ]


def parts(height, width):
    layers = torch.rand(B, L, C + 1, height, width).double()
    # Opaque, transparent, and beyond both, as softclip allows.
    layers[:, :, -1] = (layers[:, :, -1] * 1.5 - 0.25).clamp(-0.01, 1.0)
    backdrop = torch.rand(B, C, H, W).double()
    occlusion = torch.rand(B, L, L).double()
    occlusion[0] = occlusion[0].round()
    for each in occlusion:
        each.fill_diagonal_(0.0)
    inputs = (layers[:, :, :-1].clone(), layers[:, :, -1].clone(), backdrop, occlusion)
    return [each.requires_grad_() for each in inputs]


def on_canvases(colour, alpha, windows):
    layers = torch.cat([colour, alpha[:, :, None]], dim=2)
    return torch.stack([w.spread(layers[:, n]) for n, w in enumerate(windows)], dim=1)


@pytest.mark.parametrize("way", [Rowwise, Layerwise])
@pytest.mark.parametrize("size", [(2, 3), (H, W), (1, 1)])
def test_image_and_gradients_are_those_of_equation_2(way, size):
    colour, alpha, backdrop, occlusion = inputs = parts(*size)
    windows = windows_of(*size)
    weights = torch.rand(B, C, H, W).double()

    image = way.apply(colour, alpha, backdrop, occlusion, windows)
    gradients = torch.autograd.grad((image * weights).sum(), inputs)

    layers = on_canvases(colour, alpha, windows)
    plain, _ = Compositor.compose(Ordered(layers=L), layers, backdrop, occlusion)
    torch.testing.assert_close(image, plain)
    expected = torch.autograd.grad((plain * weights).sum(), inputs)
    for found, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("way", [Rowwise, Layerwise])
def test_gradients_are_those_that_differences_say(way):
    windows = windows_of(2, 3)

    assert gradcheck(lambda *inputs: way.apply(*inputs, windows), parts(2, 3))


@pytest.mark.parametrize("threads", [1, 2, B + 1])
def test_images_and_gradients_are_the_same_for_any_number_of_threads(monkeypatch, threads):
    inputs, windows = parts(2, 3), windows_of(2, 3)
    image = composite(*inputs, windows)
    expected = [image, *torch.autograd.grad(image.square().sum(), inputs)]

    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    image = composite(*inputs, windows)

    found = [image, *torch.autograd.grad(image.square().sum(), inputs)]
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("way", [Rowwise, Layerwise])
def test_an_occlusion_that_is_fixed_needs_no_gradient(way):
    colour, alpha, backdrop, occlusion = parts(2, 3)

    image = way.apply(colour, alpha, backdrop, occlusion.detach(), windows_of(2, 3))
    image.sum().backward()

    assert occlusion.grad is None
    assert alpha.grad.any()

"""The composite in windows is Eq. 2, and its gradient is that of Eq. 2."""

import pytest
import torch
from torch.autograd import gradcheck

from celstack.geometry.windows import Windows
from celstack.interfaces.compositor import Compositor
from celstack.model.compositing import Layerwise, composite
from celstack.model.compositing_cpu import Rowwise
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


@pytest.mark.parametrize("wrong", ["masks", "backdrops", "occlusion", "windows"])
def test_loops_refuse_what_does_not_fit_together(wrong):
    colour, alpha, backdrop, occlusion = parts(2, 3)
    windows = windows_of(2, 3)
    if wrong == "masks":
        alpha = alpha[:, :1]
    elif wrong == "backdrops":
        backdrop = backdrop[:, :1]
    elif wrong == "occlusion":
        occlusion = occlusion[:1]
    else:
        windows[1] = Windows((H, W), 2, 3, [0, H - 1, 0], [0, 0, 0])

    with pytest.raises(ValueError, match=f"{wrong} of"):
        Rowwise.apply(colour, alpha, backdrop, occlusion, windows)


def test_one_grey_layer_lies_as_well_in_any_order_of_memory():
    colour, alpha, backdrop, occlusion = (
        torch.rand(W, H, 1, 1, 2).permute(4, 3, 2, 1, 0),
        torch.rand(W, H, 1, 2).permute(3, 2, 1, 0),
        torch.rand(1, 1, H, W).expand(2, -1, -1, -1),
        torch.zeros(1, 1, 1).expand(2, -1, -1),
    )
    whole = [Windows.whole((H, W), 2)]

    image = Rowwise.apply(colour, alpha, backdrop, occlusion, whole)

    plain = Layerwise.apply(colour, alpha, backdrop, occlusion, whole)
    torch.testing.assert_close(image, plain)


def test_numbers_of_16_bits_are_left_to_torch():
    inputs = [each.detach().bfloat16() for each in parts(2, 3)]

    assert composite(*inputs, windows_of(2, 3)).dtype == torch.bfloat16

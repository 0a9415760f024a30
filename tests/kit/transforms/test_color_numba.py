"""Color's compiled loops compute what its torch operations do."""

import pytest
import torch
from torch.autograd import gradcheck

from celstack_kit.transforms import color
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.color.numba_cpu import GainOffset


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def parts(channels=3, spread=0.4):
    images = (torch.rand(5, channels + 1, 4, 3).double() * 1.4 - 0.2).requires_grad_()
    return images, (spread * torch.randn(5, 2 * channels).double()).requires_grad_()


def both_ways(monkeypatch, images, params):
    quick = Color()(images, params)
    monkeypatch.setattr(color, "supports", lambda _: False)
    return quick, Color()(images, params)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("spread", [0.0, 0.4])
@pytest.mark.parametrize("extreme", [False, True])
def test_colours_and_gradients_are_those_of_operations(monkeypatch, channels, spread, extreme):
    images, params = parts(channels, spread)
    if extreme:  # where softclip bends, at rest
        images = images.detach().round().clamp(0, 1).requires_grad_()
    weights = torch.rand_like(images)

    quick, plain = both_ways(monkeypatch, images, params)

    torch.testing.assert_close(quick, plain)
    pairs = (
        torch.autograd.grad((one * weights).sum(), [images, params]) for one in (quick, plain)
    )
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_are_those_that_differences_say():
    assert gradcheck(GainOffset.apply, parts())


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_and_the_order_of_memory_change_nothing(monkeypatch, threads):
    images, params = parts()
    expected = GainOffset.apply(images, params)

    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    turned = images.detach().permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)

    assert torch.equal(GainOffset.apply(turned, params), expected)


def test_what_is_not_a_number_stays_so():
    images, params = parts()
    with torch.no_grad():
        params[1, 0] = torch.nan

    assert GainOffset.apply(images, params)[1, 0].isnan().all()


def test_parameters_of_other_channels_are_refused():
    images, params = parts()

    with pytest.raises(ValueError, match="parameters of shape"):
        GainOffset.apply(images, params[:, 1:])

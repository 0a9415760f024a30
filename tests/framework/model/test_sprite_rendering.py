"""Compiled loops render sprites, and compute gradients, as torch's operations do."""

import pytest
import torch
from torch.autograd import gradcheck

from celstack import EMPTY
from celstack.geometry import Windows
from celstack.model import sprite_rendering
from celstack.model.sprite_rendering import render_sprites
from celstack.model.sprite_rendering_cpu import Spritewise
from celstack.model.sprite_warp import SpriteWarp, repeat
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.tps import Tps

WARPS = {"affine": Affine, "projective": Projective, "tps": Tps}
CANVAS, SIZE, GROUPS = (9, 21), (5, 6), 2


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def parts(name, maps=6, sprites=6, spread=0.3):
    """Return images, parameters of a warp, of which kinds the sprites are, and noise."""
    images = (torch.rand(sprites, 3, *SIZE).double() * 1.6 - 0.3).requires_grad_()
    warp = WARPS[name]().double()
    params = (spread * torch.randn(maps, warp.num_params).double()).requires_grad_()
    kinds = torch.arange(sprites) % 4 + EMPTY
    return warp, images, params, kinds, torch.rand(3, *CANVAS).double() - 0.5


def shown(warp, images, params, kinds, noise, premultiplied=False, canvas=CANVAS):
    def pull(points):
        return warp.pull(repeat(points, len(params) // len(points)), params)

    mapping = SpriteWarp(GROUPS, pull, warp.matrix(params))
    return render_sprites(images, mapping, canvas, kinds, noise, premultiplied)


def both_ways(monkeypatch, *given, **options):
    """Return windows and what they show, by loops and by operations."""
    quick = shown(*given, **options)
    with monkeypatch.context() as patch:
        patch.setattr(sprite_rendering, "supports", lambda _: False)
        return quick, shown(*given, **options)


def slopes(found, images, params):
    torch.manual_seed(1)
    total = sum((one * torch.rand_like(one)).sum() for one in found)
    return torch.autograd.grad(total, [images, params])


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("spread", [0.05, 0.3, 1.5])
@pytest.mark.parametrize(("maps", "sprites"), [(6, 6), (2, 6), (4, 8)])
def test_loops_show_what_operations_do(monkeypatch, name, noisy, spread, maps, sprites):
    warp, images, params, kinds, noise = parts(name, maps, sprites, spread)
    given = (warp, images, params, kinds, noise if noisy else None)

    (windows, *quick), (others, *plain) = both_ways(monkeypatch, *given)

    assert windows == others
    for one, other in zip(quick, plain, strict=True):
        torch.testing.assert_close(one, other)
    pairs = slopes(quick, images, params), slopes(plain, images, params)
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_are_those_that_differences_say():
    warp, images, params, kinds, noise = parts("projective")

    assert gradcheck(
        lambda *changed: shown(warp, *changed, kinds, noise)[1:], (images, params), atol=1e-4
    )


def test_colours_are_premultiplied_by_their_masks(monkeypatch):
    given = parts("affine")
    with torch.no_grad():
        (_, paint, alpha), (_, plain, _) = both_ways(monkeypatch, *given, premultiplied=True)
        _, colour, _ = shown(*given)

    torch.testing.assert_close(paint, colour * alpha[:, None])
    torch.testing.assert_close(plain, paint)


def test_premultiplied_colours_refuse_to_be_differentiated():
    _, paint, _ = shown(*parts("affine"), premultiplied=True)

    with pytest.raises(NotImplementedError, match="no gradient"):
        paint.sum().backward()


@pytest.mark.parametrize("canvas", [(64, 70), (1, 1), (40, 3)])
@pytest.mark.parametrize("name", WARPS)
def test_canvases_may_have_any_size(monkeypatch, name, canvas):
    warp, images, params, kinds, _ = parts(name)

    (_, *quick), (_, *plain) = both_ways(
        monkeypatch, warp, images, params, kinds, None, canvas=canvas
    )

    for one, other in zip(quick, plain, strict=True):
        torch.testing.assert_close(one, other)


def test_a_mask_at_its_bounds_learns_as_softclip_does(monkeypatch):
    warp, images, params, kinds, _ = parts("affine", spread=0.0)
    images = images.detach().round().clamp(0, 1).requires_grad_()

    found = both_ways(monkeypatch, warp, images, params, kinds, None)

    quick, plain = (slopes(one[1:], images, params)[0] for one in found)
    torch.testing.assert_close(quick, plain)


@pytest.mark.parametrize("name", WARPS)
def test_what_is_not_a_number_stays_so(name):
    warp, images, params, kinds, noise = parts(name)
    kinds = kinds.clamp_min(0)
    with torch.no_grad():
        params[1, 0] = torch.nan

    _, colour, alpha = shown(warp, images, params, kinds, noise)

    assert alpha[1].isnan().any()
    assert not alpha[2:].isnan().any()
    assert colour[1].isnan().any()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(monkeypatch, threads):
    given = parts("projective")
    _, *before = shown(*given)
    expected = [*before, *slopes(before, *given[1:3])]

    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    _, *after = shown(*given)

    found = [*after, *slopes(after, *given[1:3])]
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("wrong", ["sprites", "maps", "noise", "windows", "kinds", "number"])
def test_loops_refuse_what_does_not_fit_together(wrong):
    images, where = torch.rand(4, 3, *SIZE), torch.rand(4, 2, 3)
    sprite, noise = torch.zeros(4, dtype=torch.int64), torch.rand(2, *CANVAS)
    windows = Windows(CANVAS, 3, 4, [0, 1], [0, 2])
    if wrong == "sprites":
        sprite = sprite[:3]
    elif wrong == "maps":
        where = torch.rand(4, 1, 3)
    elif wrong == "noise":
        noise = noise[:, 1:]
    elif wrong == "windows":
        windows = Windows(CANVAS, 3, 4, [0, 8], [0, 2])
    elif wrong == "kinds":
        sprite = sprite + 2
    else:
        where = where[:3]

    with pytest.raises(ValueError, match=f"^({wrong} of|sprites of more|2 windows have)"):
        Spritewise.apply(images, where, sprite, noise, windows, False)


def test_numbers_of_16_bits_are_left_to_torch():
    warp, images, params, kinds, noise = parts("tps")
    low = [one.detach().bfloat16() for one in (images, params, noise)]

    _, colour, alpha = shown(warp.bfloat16(), low[0], low[1], kinds, low[2])

    assert colour.dtype == alpha.dtype == torch.bfloat16

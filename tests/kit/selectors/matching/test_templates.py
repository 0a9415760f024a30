"""What templates promise to save is what squared errors say."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from celstack.geometry.soft_bounds import softclip
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.templates import LayerContext, Templates

CANVAS = (7, 8)


def problem(seed, hides=True, hidden=True):
    torch.manual_seed(seed)
    sprites = torch.rand(3, 4, 4, 3).double()
    residual = torch.rand(2, 3, *CANVAS).double() - 0.3
    backdrop = torch.rand(2, 3, *CANVAS).double() * hides
    left = torch.rand(2, 1, *CANVAS).double() if hidden else torch.ones(2, 1, *CANVAS).double()
    return sprites, LayerContext(residual, left * backdrop, left)


def shown_at(sprite, row, column, gains):
    """Put a sprite on an empty canvas, pixel by pixel."""
    canvas = sprite.new_zeros(4, *CANVAS)
    for y in range(sprite.shape[1]):
        for x in range(sprite.shape[2]):
            if 0 <= row + y < CANVAS[0] and 0 <= column + x < CANVAS[1]:
                canvas[:3, row + y, column + x] = sprite[:3, y, x] * gains
                canvas[3, row + y, column + x] = softclip(sprite[3, y, x])
    return canvas


@given(seed=st.integers(0, 999), hides=st.booleans(), hidden=st.booleans(), tint=st.booleans())
@settings(max_examples=30, deadline=None)
def test_what_is_found_saves_what_was_promised(seed, hides, hidden, tint):
    sprites, around = problem(seed, hides, hidden)

    found = Templates(sprites, CANVAS, tint).search(around)

    shown = torch.stack(
        [
            shown_at(sprites[k], row, column, gains)
            for k, row, column, gains in zip(
                found.sprite, found.row, found.column, found.gains, strict=True
            )
        ]
    )
    saved = found.reductions.gather(1, found.sprite[:, None])[:, 0]
    torch.testing.assert_close(around.error_reduction(shown), saved)
    assert tint or (found.gains == 1).all()


@given(seed=st.integers(0, 999), hidden=st.booleans(), tint=st.booleans())
@settings(max_examples=5, deadline=None)
def test_nothing_saves_more_than_what_is_found(seed, hidden, tint):
    sprites, around = problem(seed, hidden=hidden)
    found = Templates(sprites, CANVAS, tint).search(around)
    best = found.reductions.amax(1)

    for kind in range(3):
        for row in range(-2, 6):
            for column in range(-1, 7):
                for gain in (0.0, 0.3, 0.7, 1.0) if tint else (1.0,):
                    shown = shown_at(sprites[kind], row, column, torch.full((3,), gain))
                    saved = around.error_reduction(shown.expand(2, -1, -1, -1))
                    assert (saved <= best + 1e-9).all()


def test_what_a_layer_saves_is_the_fall_of_the_squared_error():
    _, around = problem(0)
    shown = torch.rand(2, 4, *CANVAS).double()

    color, alpha = shown[:, :3], shown[:, 3:]
    left_over = around.residual - alpha * (around.transmittance * color - around.hidden)
    fall = around.residual.square().sum((1, 2, 3)) - left_over.square().sum((1, 2, 3))

    torch.testing.assert_close(around.error_reduction(shown), fall)


@pytest.mark.parametrize("tint", [False, True])
def test_both_ways_of_correlating_find_the_same(tint):
    sprites, around = problem(5)

    direct, fourier = (
        Templates(sprites, CANVAS, tint, partial(Correlation, use_fft=way)).search(around)
        for way in (False, True)
    )

    for one, other in zip(direct, fourier, strict=True):
        torch.testing.assert_close(one, other)


def test_ranks_go_from_the_best_sprite_to_the_worst():
    sprites, around = problem(7)
    templates = Templates(sprites, CANVAS, tint=True)

    ranked = [templates.search(around, rank) for rank in range(3)]

    chosen = torch.stack([found.sprite for found in ranked], dim=1)
    assert chosen.sort(1).values.tolist() == [[0, 1, 2], [0, 1, 2]]
    saved = ranked[0].reductions.gather(1, chosen)
    assert (saved.diff(dim=1) <= 0).all()

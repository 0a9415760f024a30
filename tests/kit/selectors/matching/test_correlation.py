"""Correlations are sums of products, whichever way they are computed."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from celstack_kit.selectors.matching.correlation import Correlation

sides = st.integers(1, 9)


def plain(maps, templates, margin, places):
    """Shift every template to every place and add up the products, pixel by pixel."""
    images, _, height, width = maps.shape
    found = maps.new_zeros(images, len(templates), *places)
    for image, number, row, column in torch.cartesian_prod(*map(torch.arange, found.shape)):
        for y, x in torch.cartesian_prod(*map(torch.arange, templates.shape[2:])):
            down, across = row - margin[0] + y, column - margin[1] + x
            if 0 <= down < height and 0 <= across < width:
                products = maps[image, :, down, across] * templates[number, :, y, x]
                found[image, number, row, column] += products.sum()
    return found


@given(seed=st.integers(0, 99), size=st.tuples(sides, sides), canvas=st.tuples(sides, sides))
@settings(max_examples=10, deadline=None)
def test_both_ways_are_the_plain_sum(seed, size, canvas):
    torch.manual_seed(seed)
    size = tuple(map(min, size, canvas))
    templates, maps = torch.randn(2, 2, *size).double(), torch.randn(1, 2, *canvas).double()

    for fourier in (False, True):
        correlation = Correlation(templates, canvas, fourier)
        expected = plain(maps, templates, correlation.margin, correlation.output_size)
        torch.testing.assert_close(correlation(maps), expected)


@given(
    seed=st.integers(0, 99),
    size=st.tuples(st.integers(1, 24), st.integers(1, 24)),
    canvas=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
@settings(max_examples=60, deadline=None)
def test_fourier_is_direct(seed, size, canvas):
    torch.manual_seed(seed)
    size = tuple(map(min, size, canvas))
    templates, maps = torch.randn(3, 2, *size).double(), torch.randn(2, 2, *canvas).double()

    direct, fourier = (Correlation(templates, canvas, way)(maps) for way in (False, True))

    torch.testing.assert_close(fourier, direct)


def test_the_first_place_is_half_a_template_above_and_left_of_the_first_pixel():
    template = torch.tensor([[[[0.0, 0.0], [0.0, 7.0]]]])
    maps = torch.zeros(1, 1, 4, 5)
    maps[..., 0, 0] = 3.0

    found = Correlation(template, (4, 5))(maps)

    assert found[0, 0, 0, 0] == 21
    assert found.sum() == 21


@pytest.mark.parametrize("fourier", [False, True])
def test_maps_left_out_count_as_zero(fourier):
    torch.manual_seed(0)
    templates, maps = torch.randn(3, 2, 4, 4), torch.randn(2, 1, 6, 6)
    correlation = Correlation(templates, (6, 6), fourier)

    whole = correlation(torch.cat([maps, torch.zeros_like(maps)], dim=1))

    torch.testing.assert_close(correlation(maps), whole)


def test_large_templates_go_through_fourier_and_small_ones_do_not():
    assert Correlation(torch.ones(1, 1, 24, 24), (35, 35)).spectrum is not None
    assert Correlation(torch.ones(1, 1, 3, 3), (35, 35)).spectrum is None


@given(st.integers(1, 2000))
@settings(deadline=None)
def test_a_fast_length_is_not_much_longer(length):
    _, longer = Correlation(torch.ones(1, 1, 1, 1), (1, length), use_fft=False).period

    assert length <= longer < 1.3 * length + 2
    assert 60**11 % longer == 0 or math.log2(longer) > 11

"""The few templates, blended, stand for many."""

import math

import torch

from celstack.geometry.sampling import sample_points
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.low_rank import (
    MAX_ENERGY_LOSS,
    LowRankCorrelation,
    low_rank_basis,
)
from celstack_kit.selectors.matching.placement import inverse_rotation


def turned_bars(count=48):
    """Draw a soft bar at many angles."""
    bar = torch.zeros(1, 1, 13, 13)
    bar[:, :, 4:9, 1:12] = 1.0
    steps = torch.arange(13) / 6 - 1
    points = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), dim=-1).view(1, -1, 2)
    back = inverse_rotation(torch.arange(count) * (math.pi / count))
    return sample_points(bar.expand(count, -1, -1, -1), points @ back.mT, "zeros").view(
        -1, 1, 13, 13
    )


def test_few_templates_lose_no_more_than_they_may():
    bars = turned_bars().flatten(1)

    shares = low_rank_basis(bars)

    assert shares.shape[1] < len(bars) / 2
    lost = (bars - shares @ shares.T @ bars).square().sum()
    assert lost <= MAX_ENERGY_LOSS * bars.square().sum()


def test_blends_are_nearly_what_a_correlation_is():
    bars, maps = turned_bars(), torch.rand(2, 1, 20, 22)
    shares = low_rank_basis(bars.flatten(1))

    blended = LowRankCorrelation(bars, (20, 22), shares)(maps)

    exact = Correlation(bars, (20, 22))(maps)
    assert blended.shape == exact.shape
    assert (blended - exact).square().mean() < 5 * MAX_ENERGY_LOSS * exact.square().mean()


def test_sums_that_cancel_each_other_still_do_when_blended():
    bars, ground = turned_bars(), torch.full((1, 1, 20, 22), 0.7)
    shares = low_rank_basis(bars.flatten(1))
    both = LowRankCorrelation(torch.cat([bars, 2 * bars], dim=1), (20, 22), shares)

    left_over = both(torch.cat([2 * ground, -ground], dim=1))

    torch.testing.assert_close(left_over, torch.zeros_like(left_over), atol=1e-4, rtol=0.0)


def test_without_anything_to_see_one_template_is_left():
    assert low_rank_basis(torch.zeros(3, 4)).shape == (3, 1)

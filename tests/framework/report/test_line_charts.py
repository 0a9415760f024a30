import pytest
import torch

from celstack.evaluation.visualize import color_labels
from celstack.report.line_charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Curve,
    _decades,
    draw_curves,
    draw_shares,
    label_color,
)
from celstack.report.training_log import LossPoint, StageStart, UsageShares


def places(shape):
    return [tuple(map(float, pair.split(","))) for pair in shape.points.split()]


def test_steps_run_from_left_to_right_and_small_values_are_low():
    chart = draw_curves(
        "loss", [Curve("a", [LossPoint(0, 1.0), LossPoint(50, 0.1), LossPoint(100, 0.01)])]
    )

    (first, middle, last) = places(chart.shapes[0])
    assert (first[0], last[0]) == (LEFT, WIDTH - RIGHT)
    assert TOP <= first[1] < middle[1] < last[1] <= HEIGHT - BOTTOM


def test_the_scale_is_logarithmic():
    chart = draw_curves(
        "loss", [Curve("a", [LossPoint(0, 1.0), LossPoint(5, 0.1), LossPoint(9, 0.01)])]
    )

    heights = [y for _, y in places(chart.shapes[0])]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=0.2)


def test_stages_and_marks_stand_at_their_steps():
    curve = Curve("a", [LossPoint(1, 1.0), LossPoint(100, 0.5)])

    chart = draw_curves("loss", [curve], [StageStart("learning", 50)], [25])

    middle = (LEFT + WIDTH - RIGHT) / 2
    assert [(tick.at, tick.text) for tick in chart.stages] == [(middle, "learning")]
    assert chart.marks == [(LEFT + middle) / 2]


@pytest.mark.parametrize("values", [[1e-7, 3e4], [0.5, 0.5], [0.011, 0.012]])
def test_there_are_a_few_ticks_whatever_the_values(values):
    chart = draw_curves("loss", [Curve("a", [LossPoint(n, v) for n, v in enumerate(values)])])

    assert 2 <= len(chart.up) <= 13
    assert all(TOP <= tick.at <= HEIGHT - BOTTOM for tick in chart.up)


@pytest.mark.parametrize("last", [1, 7, 99, 1400, 393_750])
def test_steps_are_told_in_round_numbers(last):
    chart = draw_curves("loss", [Curve("a", [LossPoint(last, 1.0)])])

    numbers = [int(tick.text.replace(",", "")) for tick in chart.across]
    assert numbers[0] == 0
    assert 2 <= len(numbers) <= 6
    assert numbers[-1] <= last


def test_without_positive_values_there_is_no_chart():
    assert draw_curves("loss", [Curve("a", [LossPoint(1, 0.0)]), Curve("b", [])]) is None


def test_shares_are_bands_that_fill_the_chart():
    usage = [UsageShares(10, [0.25, 0.75]), UsageShares(20, [0.5, 0.5])]

    chart = draw_shares("usage", usage, ["a", "b"])

    low, high = map(places, chart.shapes)
    floor, ceiling = HEIGHT - BOTTOM, TOP
    assert low[2] == (WIDTH - RIGHT, (floor + ceiling) / 2)
    assert {y for _, y in high[:3]} == {ceiling}
    assert {y for _, y in low[3:]} == {floor}
    assert [shape.name for shape in chart.shapes] == ["a", "b"]


def test_a_share_of_nothing_is_no_chart():
    assert draw_shares("usage", [UsageShares(10, [0.0]), UsageShares(20, [0.0])], ["a"]) is None
    assert draw_shares("usage", [UsageShares(10, [1.0])] * 2, ["a", "b"]) is None


def test_colors_are_those_of_label_maps():
    for label in (1, 2, 19):
        painted = (
            (color_labels(torch.full((1, 1, 1), label)).flatten() * 255).round().int().tolist()
        )
        assert label_color(label) == "#{:02x}{:02x}{:02x}".format(*painted)


@pytest.mark.parametrize(("low", "high"), [(307.2, 308.2), (-323.3, -322.0)])
def test_losses_near_the_limits_of_floats_have_ticks(low, high):
    assert all(10.0**low <= tick <= 10.0**high for tick in _decades(low, high))

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celstack.runs.statistics import MeanStd, find_outliers, mean_std

PAPERS_LOSSES = [1.51e-3, 1.49e-3, 1.93e-3, 1.52e-3, 1.57e-3]
LOSSES = st.lists(st.floats(1e-6, 1.0), max_size=8)


def test_the_deviation_is_that_of_a_sample():
    # A population of these would have 1.
    assert mean_std([1.0, 3.0]) == MeanStd(2.0, math.sqrt(2), 2)


def test_one_value_has_no_deviation():
    assert mean_std([0.25]) == MeanStd(0.25, None, 1)


def test_what_is_no_number_is_left_out_and_not_counted():
    assert mean_std([math.nan, 1.0, 3.0]) == MeanStd(2.0, math.sqrt(2), 2)
    assert mean_std([math.nan]) is None


def test_the_papers_figures_are_those_of_samples():
    """Four runs of 92.5 ± 0.3 and one more make 91.5 ± 2.2."""
    four = [92.5 + 0.26 * sign for sign in (-1, 1, -1, 1)]
    assert mean_std(four).format(percent=False).startswith("92.5 ± 0.3")

    five = mean_std([*four, 5 * 91.52 - sum(four)])

    assert f"{five.mean:.1f} ± {five.std:.1f}" == "91.5 ± 2.2"


@pytest.mark.parametrize(
    ("figure", "percent", "spelt"),
    [
        (MeanStd(0.9962, 0.0018), True, "99.6 ± 0.2"),
        (MeanStd(0.9962), True, "99.6"),
        (MeanStd(1.0, 0.0), True, "100.0 ± 0.0"),
        (MeanStd(0.0, 0.0), True, "0.0 ± 0.0"),
        (MeanStd(0.001514, 0.00003), False, "0.00151 ± 0.00003"),
        (MeanStd(0.001514), False, "0.00151"),
        (MeanStd(0.0, 0.5), False, "0.0 ± 0.5"),
        (MeanStd(-12.34, 1.0), False, "-12.3 ± 1.0"),
        (MeanStd(1234.5), False, "1234"),
    ],
)
def test_spelling(figure, percent, spelt):
    assert figure.format(percent) == spelt


def test_the_papers_outlier_is_found():
    assert find_outliers(PAPERS_LOSSES) == [2]


@pytest.mark.parametrize(
    ("losses", "outliers"),
    [
        ([1.0, 1.0, 1.19], []),
        ([1.0, 1.0, 1.21], [2]),
        ([1.0, 1.0, 0.1], []),  # a low loss is no fault
        ([2.0, 1.0, 1.0, 1.0, 2.0], [0, 4]),
        ([1.0, 9.0], []),  # of two, which one?
        ([9.0], []),
        ([], []),
        ([1.0, 1.0, 9.0, None], []),  # not all is known
    ],
)
def test_outliers(losses, outliers):
    assert find_outliers(losses) == outliers


@given(LOSSES)
def test_fewer_than_half_are_left_out(losses):
    assert 2 * len(find_outliers(losses)) <= len(losses)


@given(LOSSES)
def test_an_outlier_has_lost_more_than_all_that_are_kept(losses):
    left_out = find_outliers(losses)
    kept = [loss for index, loss in enumerate(losses) if index not in left_out]
    for index in left_out:
        assert losses[index] > max(kept)
        assert losses[index] > 1.2 * median(losses)

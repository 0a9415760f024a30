import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from celstack.scene import EMPTY
from celstack.testing import check_metric
from celstack_kit.metrics.nmi import Nmi


def score(judged, *batches):
    """Score images of one pixel and one layer."""
    metric = Nmi()
    for label, sprite in batches:
        metric.update(*judged([[s] for s in sprite], [[[1.0]]] * len(sprite), label=label))
    return metric.compute()


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Nmi())


@pytest.mark.parametrize(
    ("label", "sprite", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [5, 5, 0, 0], 1.0),  # names do not matter
        ([0, 0, 1, 1], [0, 0, EMPTY, EMPTY], 1.0),  # no sprite at all is a cluster too
        ([0, 0, 1, 1], [0, 1, 0, 1], 0.0),
        ([0, 0, 1, 1], [0, 0, 0, 0], 0.0),  # one cluster
        ([3, 3, 3], [0, 1, 2], 0.0),  # one class
        ([3, 3, 3], [2, 2, 2], 1.0),  # one cluster, one class
        ([0], [1], 1.0),
        # One bit of two: 2/3 of the arithmetic mean, 1/sqrt(2) of the geometric.
        ([0, 0, 1, 1], [0, 1, 2, 3], 2 / 3),
        ([0, 1, 2, 3], [0, 0, 1, 1], 2 / 3),
    ],
)
def test_values(judged, label, sprite, expected):
    assert score(judged, (label, sprite)) == pytest.approx(expected, abs=1e-12)
    assert normalized_mutual_info_score(label, sprite) == pytest.approx(expected, abs=1e-12)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(EMPTY, 4)), min_size=1, max_size=30)


@given(PAIRS)
@settings(deadline=None, max_examples=150)
def test_it_agrees_with_scikit_learn(judged, pairs):
    label, sprite = zip(*pairs, strict=True)

    expected = normalized_mutual_info_score(label, sprite)
    found = score(judged, (label, sprite))
    assert found == pytest.approx(expected, abs=1e-9)
    assert math.copysign(1.0, found) == 1.0


def test_rounding_does_not_make_it_negative(judged):
    label, sprite = [0] * 6 + [1] * 6, [0, 0, 0, 0, 0, 1] * 2  # shares -2e-16 when rounded

    assert score(judged, (label, sprite)) == 0.0


def test_batches_are_counted_together(judged):
    first, second = ([0, 0, 3], [1, EMPTY, 1]), ([1, 1, 0], [4, 4, 1])

    expected = normalized_mutual_info_score([0, 0, 3, 1, 1, 0], [1, EMPTY, 1, 4, 4, 1])
    assert score(judged, first, second) == pytest.approx(expected)


def test_it_is_left_out_where_labels_are_not_known():
    assert Nmi.needs == ("label",)

import pytest

from celstack.testing import check_metric
from celstack_kit.metrics.cosegmentation import Cosegmentation


def scored(*batches):
    metric = Cosegmentation()
    for batch in batches:
        metric.update(*batch)
    return metric


def told(judged, instances, *visible):
    """Make one image."""
    return judged([[0] * len(visible)], [visible], instances=[instances])


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Cosegmentation())


@pytest.mark.parametrize(
    ("instances", "visible", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [0, 0, 0, 1], 3 / 4),
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),  # swapped
        ([0, 0, 1, 1], [1, 1, 0, 1], 3 / 4),
        ([0, 0, 1, 1], [0, 1, 0, 1], 1 / 2),
        ([0, 0, 3, 1], [0, 0, 1, 1], 1.0),  # which object does not matter
        ([0, 0, 1, 1], [0, 0.5, 0.51, 1], 1.0),  # more than half is foreground
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),  # no foreground
        ([1, 1, 1, 1], [0, 0, 0, 0], 1.0),  # nothing else, swapped
        ([1, 1, 1, 1], [1, 1, 1, 0], 3 / 4),
    ],
)
def test_values(judged, instances, visible, expected):
    assert scored(told(judged, instances, visible)).compute() == expected


def test_layers_show_foreground_together(judged):
    faint = told(judged, [1, 0], [0.4, 0.2], [0.4, 0.2])

    assert scored(faint).compute() == 1.0


def test_all_images_are_swapped_or_none(judged):
    right = told(judged, [0, 0, 0, 1], [0, 0, 0, 1])
    wrong = told(judged, [0, 0, 0, 1], [1, 1, 1, 0])

    assert scored(right, right, wrong).compute() == pytest.approx(2 / 3)
    assert scored(wrong, right, wrong).compute() == pytest.approx(2 / 3)


def test_scores_of_images_follow_the_swap(judged):
    right = told(judged, [0, 0, 0, 1], [0, 0, 0, 1])
    wrong = told(judged, [0, 0, 0, 1], [1, 1, 1, 0])
    poor = told(judged, [0, 0, 0, 1], [0, 0, 1, 1])

    assert scored(right, poor, wrong).scores == [1.0, 0.75, 0.0]
    assert scored(wrong, poor, wrong).scores == [1.0, 0.25, 1.0]


def test_it_is_left_out_where_instances_are_not_known():
    assert Cosegmentation.needs == ("instances",)

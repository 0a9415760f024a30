import pytest

from celstack.scene import EMPTY
from celstack.testing import check_metric
from celstack_kit.metrics.accuracy import Accuracy


def told(judged, label, sprite):
    """Make images of one pixel and one layer."""
    return judged([[s] for s in sprite], [[[1.0]]] * len(sprite), label=label)


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Accuracy())


@pytest.mark.parametrize(
    ("label", "sprite", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [5, 5, 0, 0], 1.0),  # names do not matter
        ([0, 0, 1, 1], [0, 0, 0, 0], 1 / 2),  # one cluster
        ([3, 3, 3], [0, 0, 0], 1.0),  # one cluster, one class
        ([0, 0, 0, 0], [0, 1, 2, 2], 1 / 2),  # clusters do not share a class
        ([0, 1, 2, 3], [1, 1, 1, 1], 1 / 4),  # and classes do not share a cluster
        ([0, 0, 0, 1], [0, 0, 0, 0], 3 / 4),  # images weigh the same, classes do not
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0, 0, 0, 0], 7 / 10),
        ([0, 0, 1, 1], [0, 0, EMPTY, EMPTY], 1.0),  # no sprite at all is a cluster too
        ([0, 0, 1, 1], [0, 0, 0, EMPTY], 3 / 4),
    ],
)
def test_values(judged, label, sprite, expected):
    metric = Accuracy()

    metric.update(*told(judged, label, sprite))

    assert metric.compute() == pytest.approx(expected)


def test_clusters_are_matched_once_for_all_batches(judged):
    metric = Accuracy()

    metric.update(*told(judged, [0, 1], [0, 1]))
    metric.update(*told(judged, [0, 1, 0, 1], [1, 0, 1, 0]))

    assert metric.compute() == pytest.approx(4 / 6)


def test_the_sprite_that_shows_most_is_the_cluster(judged):
    metric = Accuracy()
    visible = [[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]]

    metric.update(*judged([[0, 1], [0, 1]], visible, label=[0, 1]))

    assert metric.compute() == 1.0


def test_it_is_left_out_where_labels_are_not_known():
    assert Accuracy.needs == ("label",)

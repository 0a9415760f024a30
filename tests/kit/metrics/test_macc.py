import pytest
import torch
from sklearn.metrics import balanced_accuracy_score

from celstack.scene import EMPTY
from celstack.testing import check_metric
from celstack_kit.metrics.macc import Macc

LAYERS = [[0, 1, 2]]


def score(*batches):
    metric = Macc()
    for batch in batches:
        metric.update(*batch)
    return metric.compute()


def test_it_keeps_the_promises_of_a_metric():
    check_metric(Macc())


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [0, 0, 3, 3], 1.0),  # names do not matter
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),  # background is matched like the rest
        # Over true pixels, 5/6 and 1; over predicted ones, 1 and 1/2.
        ([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 1], (5 / 6 + 1) / 2),
        ([0, 0, 0, 1], [0, 0, 0, 0], 1 / 2),  # classes weigh the same, pixels do not
        ([0, 0, 2, 2], [0, 0, 1, 1], 1.0),  # class 1 is nowhere
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),  # all is background, and found to be
        ([1, 1, 1, 1], [0, 0, 0, 0], 1.0),  # one object, nothing else
        ([0, 0, 0, 0], [0, 0, 1, 2], 1 / 2),  # more sprites than classes
        ([0, 1, 2, 3], [0, 0, 0, 0], 1 / 4),  # fewer
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1], 2 / 3),
    ],
)
def test_values(shown, classes, labels, expected):
    assert score(shown([labels], LAYERS, classes=[classes])) == pytest.approx(expected)


def test_it_is_the_sprite_that_counts_not_the_layer(shown):
    one = shown([[1, 1, 2, 0]], [[4, 2]], classes=[[1, 1, 2, 0]])
    other = shown([[2, 2, 1, 0]], [[2, 4]], classes=[[1, 1, 2, 0]])

    assert score(one, other) == 1.0


def test_sprites_are_matched_once_for_all_images(shown):
    one = shown([[1, 1, 2, 2]], [[0, 1]], classes=[[1, 1, 2, 2]])
    other = shown([[2, 2, 1, 1]], [[0, 1]], classes=[[1, 1, 2, 2]])

    assert score(one) == score(other) == 1.0
    assert score(one, other) == 0.5


def test_an_empty_layer_is_background(shown):
    assert score(shown([[0, 2, 1]], [[0, EMPTY]], classes=[[0, 0, 1]])) == 1.0


def test_it_is_scikit_learns_balanced_accuracy_after_matching(shown):
    random = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 4, (5, 60), generator=random)
    noise = torch.randint(0, 4, (5, 60), generator=random)
    labels = torch.where(torch.rand(5, 60, generator=random) < 0.6, classes, noise)

    turned = (labels + 1) % 4  # a renaming that matching has to undo
    found = score(shown(turned.tolist(), LAYERS * 5, classes=classes.tolist()))

    assert found == pytest.approx(balanced_accuracy_score(classes.flatten(), labels.flatten()))


def test_it_is_left_out_where_classes_are_not_known():
    assert Macc.needs == ("classes",)

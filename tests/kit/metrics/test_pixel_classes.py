"""What metrics over the classes of pixels have in common."""

from functools import partial

import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, jaccard_score

from celstack.scene import EMPTY
from celstack.testing import check_metric
from celstack_kit.metrics.macc import Macc
from celstack_kit.metrics.miou import Miou

both = pytest.mark.parametrize("kind", [Macc, Miou])


@both
def test_it_keeps_the_promises_of_a_metric(kind):
    check_metric(kind())


@both
def test_it_is_left_out_where_classes_are_not_known(kind):
    assert kind.needs == ("classes",)


@both
def test_it_is_the_sprite_that_counts_not_the_layer(kind, shown, score_of):
    one = shown([[1, 1, 2, 0]], [[4, 2]], classes=[[1, 1, 2, 0]])
    other = shown([[2, 2, 1, 0]], [[2, 4]], classes=[[1, 1, 2, 0]])

    assert score_of(kind(), one, other) == 1.0


@both
def test_an_empty_layer_is_background(kind, shown, score_of):
    batch = shown([[0, 2, 1]], [[0, EMPTY]], classes=[[0, 0, 1]])

    assert score_of(kind(), batch) == 1.0


@pytest.mark.parametrize(
    ("kind", "reference"),
    [(Macc, balanced_accuracy_score), (Miou, partial(jaccard_score, average="macro"))],
)
def test_it_is_scikit_learns_score_after_matching(kind, reference, shown, score_of):
    random = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 4, (5, 60), generator=random)
    noise = torch.randint(0, 4, (5, 60), generator=random)
    labels = torch.where(torch.rand(5, 60, generator=random) < 0.6, classes, noise)

    turned = (labels + 1) % 4  # a renaming that matching has to undo
    batch = shown(turned.tolist(), [[0, 1, 2]] * 5, classes=classes.tolist())

    expected = reference(classes.flatten(), labels.flatten())
    assert score_of(kind(), batch) == pytest.approx(expected)

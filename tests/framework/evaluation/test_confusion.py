import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from celstack.evaluation.confusion import Confusion, contingency

LABELS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=40)


def confusion(*batches):
    """Count batches of pairs."""
    counted = Confusion()
    for pairs in batches:
        truth, labels = torch.tensor(pairs).T
        counted.add(truth, labels)
    return counted


def from_table(table):
    counted = Confusion()
    counted.table = torch.tensor(table, dtype=torch.float64)
    return counted


def test_truth_is_in_rows_and_predictions_are_in_columns():
    assert confusion([(0, 2), (0, 2), (1, 0)]).table.tolist() == [[0, 0, 2], [1, 0, 0]]


@given(LABELS)
@settings(deadline=None)
def test_counts_agree_with_scikit_learn(pairs):
    table = confusion(pairs).table

    truth, labels = zip(*pairs, strict=True)
    expected = torch.from_numpy(confusion_matrix(truth, labels, labels=range(7)))
    assert table.tolist() == expected[: len(table), : table.shape[1]].tolist()
    assert table.sum() == expected.sum()


@given(LABELS, LABELS)
@settings(deadline=None)
def test_batches_add_up_whatever_labels_they_hold(first, second):
    assert confusion(first, second).table.tolist() == confusion(first + second).table.tolist()


def test_images_are_counted_apart():
    truth, labels = torch.tensor([[[0, 1]], [[1, 1]]]), torch.tensor([[[0, 2]], [[0, 0]]])

    tables = contingency(truth, labels)

    assert tables.tolist() == [[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [2, 0, 0]]]


@pytest.mark.parametrize(
    ("table", "hits", "true", "predicted"),
    [
        ([[5, 1], [2, 7]], [5, 7], [6, 9], [7, 8]),
        ([[1, 5], [7, 2]], [5, 7], [6, 9], [7, 8]),  # background is matched like the rest
        ([[5, 4], [5, 0]], [4, 5], [9, 5], [4, 10]),  # most together, not first come
        ([[5, 1, 0], [2, 3, 4]], [5, 4], [6, 9], [7, 4]),  # a label too many
        ([[5, 1], [2, 7], [0, 3]], [5, 7, 0], [6, 9, 3], [7, 11, 0]),  # one too few
        ([[5, 1], [0, 0], [2, 7]], [5, 7], [6, 9], [7, 8]),  # a class that never occurs
        ([[5, 0, 1], [2, 0, 7]], [5, 7], [6, 9], [7, 8]),  # a label that never occurs
    ],
)
def test_matching(table, hits, true, predicted):
    matched = from_table(table).match()

    assert matched.hits.tolist() == hits
    assert matched.true.tolist() == true
    assert matched.predicted.tolist() == predicted

import pytest

from celstack_kit.metrics.miou import Miou

LAYERS = [[0, 1, 2]]


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [0, 0, 3, 3], 1.0),  # names do not matter
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),  # background is matched like the rest
        ([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 1], (5 / 6 + 1 / 2) / 2),
        ([0, 0, 0, 1], [0, 0, 0, 0], (3 / 4 + 0) / 2),
        ([0, 0, 2, 2], [0, 0, 1, 1], 1.0),  # class 1 is nowhere
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),  # all is background, and found to be
        ([1, 1, 1, 1], [0, 0, 0, 0], 1.0),  # one object, nothing else
        ([0, 0, 0, 0], [0, 0, 1, 2], 1 / 2),  # more sprites than classes
        ([0, 1, 2, 3], [0, 0, 0, 0], 1 / 16),  # fewer
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1], (1 + 1 / 2 + 0) / 3),
    ],
)
def test_values(shown, score_of, classes, labels, expected):
    assert score_of(Miou(), shown([labels], LAYERS, classes=[classes])) == pytest.approx(
        expected
    )


def test_it_counts_pixels_of_all_images_together(shown, score_of):
    one = shown([[1, 1, 0, 0]], [[0]], classes=[[1, 1, 0, 0]])
    other = shown([[0, 0, 0, 0]], [[0]], classes=[[1, 0, 0, 0]])

    assert score_of(Miou(), one, other) == pytest.approx((2 / 3 + 5 / 6) / 2)

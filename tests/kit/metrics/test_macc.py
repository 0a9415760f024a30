import pytest

from celstack_kit.metrics.macc import Macc

LAYERS = [[0, 1, 2]]


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
def test_values(shown, score_of, classes, labels, expected):
    assert score_of(Macc(), shown([labels], LAYERS, classes=[classes])) == pytest.approx(
        expected
    )


def test_sprites_are_matched_once_for_all_images(shown, score_of):
    one = shown([[1, 1, 2, 2]], [[0, 1]], classes=[[1, 1, 2, 2]])
    other = shown([[2, 2, 1, 1]], [[0, 1]], classes=[[1, 1, 2, 2]])

    assert score_of(Macc(), one) == score_of(Macc(), other) == 1.0
    assert score_of(Macc(), one, other) == 0.5

import pytest

from celstack.evaluation.confusion import clusters
from celstack.scene import EMPTY


@pytest.mark.parametrize(
    ("sprite", "visible", "cluster"),
    [
        ([4], [[1, 1]], 5),
        ([0], [[1, 1]], 1),
        ([EMPTY], [[0, 0]], 0),
        ([2], [[0, 0]], 3),  # hidden, and yet the only one
        ([2], [[-0.01, -0.01]], 3),  # masks may be a little less than transparent
        ([EMPTY, 2], [[0, 0], [-0.01, -0.01]], 3),
        ([3, 5], [[1, 0, 0], [0, 1, 1]], 6),
        ([3, 5], [[1, 1, 0], [0, 0, 1]], 4),
        ([5, 3], [[1, 0, 0], [0, 0.4, 0.4]], 6),  # area is what shows, not where
        ([EMPTY, EMPTY], [[0, 0], [0, 0]], 0),
    ],
)
def test_an_image_is_named_after_the_sprite_that_shows_most(judged, sprite, visible, cluster):
    scene, rendering, _ = judged([sprite], [visible])

    assert clusters(scene, rendering).tolist() == [cluster]


def test_every_image_has_its_own(judged):
    scene, rendering, _ = judged([[1, 2], [1, 2]], [[[1], [0]], [[0], [1]]])

    assert clusters(scene, rendering).tolist() == [2, 3]

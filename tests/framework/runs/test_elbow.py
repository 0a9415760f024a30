"""The elbow, by hand."""

import pytest

from celstack.runs.statistics import find_elbow


@pytest.mark.parametrize(
    ("points", "elbow"),
    [
        # From (0, 4) to (4, 0) the line is at 3, 2, 1; below it: 1, 2, 0.9.
        ([(0, 4), (1, 2), (2, 0), (3, 0.1), (4, 0)], 2),
        # Scaled: a thousand times the loss has the same elbow ...
        ([(0, 4000), (1, 2000), (2, 0), (3, 100), (4, 0)], 2),
        # ... and so have ten times the sprites.
        ([(0, 4), (10, 2), (20, 0), (30, 0.1), (40, 0)], 2),
        # Not evenly spaced: at 2 the line is at 0.75, at 4 at 0.25.
        ([(1, 1.0), (2, 0.3), (4, 0.0), (5, 0.0)], 1),
        ([(0, 1), (1, 0)], None),  # two points have none
        ([(0, 2), (1, 1), (2, 0)], None),  # nor has a straight line
        ([(0, 2), (1, 1.9), (2, 0)], None),  # nor a curve above it
        ([(0, 0), (1, 1), (2, 2)], None),  # nor one that climbs
        ([(0, 1), (1, 1), (2, 1)], None),
        ([(0, 1), (1, 0.1), (2, 1)], None),
    ],
)
def test_the_elbow_is_the_point_farthest_below_the_line_from_first_to_last(points, elbow):
    assert find_elbow([(float(x), float(y)) for x, y in points]) == elbow

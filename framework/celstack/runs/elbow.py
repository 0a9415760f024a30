"""The elbow of a curve: from where on more of something gains little."""

from __future__ import annotations

from collections.abc import Sequence

RULE = (
    "The elbow is the point farthest below the straight line from the first to the last point, "
    "when both axes are scaled to the range of the values."
)
FEWEST = 3


def find_elbow(points: Sequence[tuple[float, float]]) -> int | None:
    """Return which point is the elbow; None if the curve has none.

    Points go from left to right. After scaling, the distance to the line is in proportion to
    the height below it, so the point that is lowest below the line is the farthest, too.
    """
    if len(points) < FEWEST:
        return None
    (left, start), (right, end) = points[0], points[-1]
    heights = [y for _, y in points]
    height = max(heights) - min(heights)
    if right == left or height == 0 or start <= end:
        return None  # more of it gains nothing at all
    below = [
        (start + (x - left) / (right - left) * (end - start) - y) / height for x, y in points
    ]
    farthest = max(range(len(points)), key=lambda index: below[index])
    return farthest if below[farthest] > 1e-9 else None

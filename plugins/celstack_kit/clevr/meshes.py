"""The cube and the cylinder of CLEVR, whose edges are a little rounded: light plays on them.

Both reach from -1 to 1 and stand on their bottom. A mesh is its points (n, 3), the normals
there (n, 3), and triangles of points (m, 3), which run against the clock seen from outside.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Mesh = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]

EDGE = 0.1
"""The radius of an edge."""
STEPS = 6
"""In so many steps an edge turns by an eighth or a quarter."""
AROUND = 64


@cache
def rounded_cube() -> Mesh:
    """Take the points of a cube, and move those near its edges onto the rounded ones."""
    inner = 1 - EDGE
    rim = inner + EDGE * np.tan(np.linspace(0, np.pi / 4, STEPS))
    lines = np.concatenate([-rim[::-1], rim])
    first, second = np.meshgrid(lines, lines, indexing="ij")
    top = np.stack([first, second, np.ones_like(first)], axis=-1).reshape(-1, 3)
    grid = _triangles(len(lines), len(lines))
    sides: list[NDArray[np.float64]] = []
    faces: list[NDArray[np.int64]] = []
    for axis in range(3):
        # Mirrored at the middle, triangles run the other way round.
        for sign in (1, -1):
            faces.append(grid[:, ::sign] + len(sides) * len(top))
            sides.append(np.roll(sign * top, axis, axis=1))
    points = np.concatenate(sides)
    kernel = points.clip(-inner, inner)
    normals = points - kernel
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return kernel + EDGE * normals, normals, np.concatenate(faces)


@cache
def rounded_cylinder() -> Mesh:
    """Turn an outline around the axis: from the middle of the top to that of the bottom."""
    angles = np.linspace(0, np.pi / 2, STEPS)
    out, up = np.sin(angles), np.cos(angles)
    half = [[0, 1, 0, 1], *np.stack([1 - EDGE + EDGE * out, 1 - EDGE + EDGE * up, out, up], 1)]
    upper = np.array(half)
    outline = np.concatenate([upper, upper[::-1] * (1, -1, 1, -1)])
    around = np.linspace(0, 2 * np.pi, AROUND + 1)
    circle = np.stack([np.cos(around), np.sin(around), np.ones_like(around)], axis=-1)
    points = outline[:, None, [0, 0, 1]] * circle
    normals = outline[:, None, [2, 2, 3]] * circle
    faces = _triangles(len(outline), len(around))
    return points.reshape(-1, 3), normals.reshape(-1, 3), faces


def _triangles(rows: int, columns: int) -> NDArray[np.int64]:
    """Halve the squares of a grid of points."""
    number = np.arange(rows * columns).reshape(rows, columns)
    corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    square = np.stack(corners, axis=-1).reshape(-1, 4)
    return np.concatenate([square[:, [0, 1, 2]], square[:, [0, 2, 3]]])

"""Triangle meshes of CLEVR's cube and cylinder, with rounded edges for highlights.

Convention: both extend from -1 to 1. The mesh is vertices (n, 3), vertex normals (n, 3) and
triangles (m, 3) of vertex indices, counterclockwise seen from outside.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Mesh = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]

EDGE = 0.1
"""Radius of the rounded edges."""
STEPS = 6
"""Number of vertices along a rounded edge of 45 or 90 degrees."""
CIRCLE_SEGMENTS = 64


@cache
def rounded_cube() -> Mesh:
    """Return a cube with rounded edges: the Minkowski sum of a smaller cube and a ball."""
    inner = 1 - EDGE
    rim = inner + EDGE * np.tan(np.linspace(0, np.pi / 4, STEPS))
    lines = np.concatenate([-rim[::-1], rim])
    first, second = np.meshgrid(lines, lines, indexing="ij")
    top = np.stack([first, second, np.ones_like(first)], axis=-1).reshape(-1, 3)
    grid = _triangles(len(lines), len(lines))
    sides: list[NDArray[np.float64]] = []
    faces: list[NDArray[np.int64]] = []
    for axis in range(3):
        # Mirroring reverses the orientation of triangles.
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
    """Return a cylinder with rounded edges: the surface of revolution of its outline."""
    angles = np.linspace(0, np.pi / 2, STEPS)
    out, up = np.sin(angles), np.cos(angles)
    half = [[0, 1, 0, 1], *np.stack([1 - EDGE + EDGE * out, 1 - EDGE + EDGE * up, out, up], 1)]
    upper = np.array(half)
    outline = np.concatenate([upper, upper[::-1] * (1, -1, 1, -1)])
    around = np.linspace(0, 2 * np.pi, CIRCLE_SEGMENTS + 1)
    circle = np.stack([np.cos(around), np.sin(around), np.ones_like(around)], axis=-1)
    points = outline[:, None, [0, 0, 1]] * circle
    normals = outline[:, None, [2, 2, 3]] * circle
    faces = _triangles(len(outline), len(around))
    return points.reshape(-1, 3), normals.reshape(-1, 3), faces


def _triangles(rows: int, columns: int) -> NDArray[np.int64]:
    """Return the two triangles of each cell of a vertex grid."""
    number = np.arange(rows * columns).reshape(rows, columns)
    corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    square = np.stack(corners, axis=-1).reshape(-1, 4)
    return np.concatenate([square[:, [0, 1, 2]], square[:, [0, 2, 3]]])

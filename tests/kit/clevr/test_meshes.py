import numpy as np
import pytest

from celstack_kit.clevr.meshes import rounded_cube, rounded_cylinder

MESHES = pytest.mark.parametrize("mesh", [rounded_cube, rounded_cylinder])


@MESHES
def test_a_body_fills_its_box(mesh):
    points, _, _ = mesh()

    np.testing.assert_allclose([points.min(0), points.max(0)], [[-1] * 3, [1] * 3], atol=1e-12)


@MESHES
def test_triangles_look_outwards_as_their_normals_do(mesh):
    points, normals, faces = mesh()
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    across = np.cross(b - a, c - a)

    whole = np.linalg.norm(across, axis=1) > 1e-9  # those in the middle of a lid have no area
    agreed = (across[whole] * normals[faces[whole]].mean(1)).sum(1)
    assert (agreed > 0).all()
    assert ((a[whole] * across[whole]).sum(1) > 0).all()


@MESHES
def test_normals_have_length_one(mesh):
    _, normals, _ = mesh()

    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1)


def test_the_edges_of_a_cube_are_rounded_and_its_sides_are_flat():
    points, normals, _ = rounded_cube()

    assert np.linalg.norm(points, axis=1).max() < np.sqrt(3) - 0.07
    middle = (np.abs(points[:, :2]) <= 0.9).all(1) & (points[:, 2] > 0)
    np.testing.assert_allclose(points[middle][:, 2], 1)
    np.testing.assert_allclose(normals[middle], [[0, 0, 1]] * middle.sum())


def test_a_cylinder_is_round_about_its_axis():
    points, _, _ = rounded_cylinder()

    side = np.abs(points[:, 2]) < 0.91
    np.testing.assert_allclose(np.hypot(*points[side, :2].T), 1)

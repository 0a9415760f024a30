import zipfile

import numpy as np
import pytest

from celstack.errors import CelstackError
from celstack_kit.datasets.multi_dsprites import shapes as dsprites
from celstack_kit.datasets.multi_dsprites.shapes import DrawnShapes, PublishedShapes

SQUARE, ELLIPSE, HEART = range(3)
LARGEST = 5


def mask(shape, scale=LARGEST, turn=0, column=16, row=16):
    return DrawnShapes().masks(np.array([[shape, scale, turn, column, row]]))[0]


def size(pixels):
    return int(pixels.any(0).sum()), int(pixels.any(1).sum())


@pytest.mark.parametrize(
    ("shape", "width_and_height"), [(SQUARE, (21, 21)), (ELLIPSE, (27, 15)), (HEART, (23, 21))]
)
def test_shapes_are_as_large_as_those_of_dsprites(shape, width_and_height):
    assert size(mask(shape)) == width_and_height


def test_six_scales_grow_evenly_from_a_half():
    widths = [size(mask(SQUARE, scale))[0] for scale in range(6)]

    assert widths == [11, 13, 15, 17, 19, 21]


def test_a_square_is_full_and_an_ellipse_is_not():
    assert mask(SQUARE).sum() == 21 * 21
    assert mask(ELLIPSE).sum() == pytest.approx(np.pi * 13.2 * 7.3, abs=8)


def test_a_heart_has_a_notch_above_and_a_point_below():
    heart = mask(HEART)
    rows = np.flatnonzero(heart.any(1))
    top, bottom = heart[rows[0]], heart[rows[-1]]

    assert np.array_equal(heart[:, 1:], heart[:, :0:-1])  # mirrored about column 32
    assert (np.diff(np.flatnonzero(top)) > 1).sum() == 1
    assert bottom.sum() <= 3


def test_columns_go_right_and_rows_go_down():
    corner = mask(SQUARE, column=0, row=0)
    moved = mask(SQUARE, column=3, row=7)

    assert corner[6:27, 6:27].all()
    assert np.array_equal(np.roll(corner, (7, 3), (0, 1)), moved)


def test_turns_are_clockwise():
    # Ten of the 39 steps are a little more than a quarter.
    turned = mask(HEART, turn=10)
    columns = np.flatnonzero(turned.any(0))

    # The point, first below, is left now.
    assert 2 * turned[:, columns[:4]].sum() < turned[:, columns[-4:]].sum()


@pytest.mark.parametrize("shape", [SQUARE, ELLIPSE, HEART])
def test_a_turned_shape_is_as_large_as_before(shape):
    areas = DrawnShapes().windows[shape, LARGEST].sum((1, 2))

    assert np.abs(areas / areas[0] - 1).max() < 0.06


def test_the_last_turn_is_the_first_again_as_published():
    drawn = DrawnShapes().windows

    assert np.array_equal(drawn[:, :, 0], drawn[:, :, 39])
    assert not np.array_equal(drawn[:, :, 0], drawn[:, :, 38])


@pytest.mark.parametrize("place", [(0, 0), (31, 31), (0, 31)])
def test_nothing_is_cut_off_at_the_edge_of_the_canvas(place):
    poses = [(s, LARGEST, turn, *place) for s in range(3) for turn in range(40)]

    pixels = DrawnShapes().masks(np.array(poses))

    assert not pixels[:, [0, -1]].any() and not pixels[:, :, [0, -1]].any()
    assert np.array_equal(
        pixels.sum((1, 2)), DrawnShapes().windows[:, LARGEST].sum((2, 3)).ravel()
    )


class Explosive:
    def __reduce__(self):
        return pytest.fail, ("the pickled description was loaded",)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """The dSprites of 3 x 1 x 2 x 2 x 2 images, each with as many pixels as its number."""
    monkeypatch.setattr(dsprites, "POSES", (3, 1, 2, 2, 2))
    images = np.arange(4096) < np.arange(24)[:, None]
    images = images.astype(np.uint8).reshape(24, 64, 64)
    described = np.array(Explosive(), dtype=object)
    np.savez_compressed(tmp_path / "dsprites.npz", metadata=described, imgs=images)
    return tmp_path / "dsprites.npz"


def test_published_shapes_are_looked_up_by_pose(tiny):
    poses = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [2, 0, 1, 1, 1]])

    found = PublishedShapes(tiny).masks(poses)

    assert found.dtype == bool
    assert found.sum((1, 2)).tolist() == [1, 2, 4, 23]
    assert found[3].ravel()[:23].all()


def test_shapes_of_another_number_are_refused(tiny, monkeypatch):
    monkeypatch.setattr(dsprites, "POSES", (3, 1, 2, 2, 3))

    with pytest.raises(CelstackError) as refused:
        PublishedShapes(tiny)

    text = "imgs.npy is uint8 (24, 64, 64), not uint8 (36, 64, 64)"
    assert str(refused.value) == f"{tiny}: {text}"


def test_other_files_are_refused(tiny):
    tiny.write_bytes(b"no archive")

    with pytest.raises(CelstackError, match=r"dsprites.npz: damaged or unreadable"):
        PublishedShapes(tiny)


def test_an_archive_without_images_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", other=np.zeros(3))

    with pytest.raises(CelstackError, match=r"x.npz: damaged or unreadable .*imgs.npy"):
        PublishedShapes(tmp_path / "x.npz")


def test_a_file_that_ends_too_soon_is_refused(tiny):
    with zipfile.ZipFile(tiny) as archive:
        data = archive.read("imgs.npy")
    with zipfile.ZipFile(tiny, "w") as archive:
        archive.writestr("imgs.npy", data[:-1])

    with pytest.raises(CelstackError, match=r"imgs.npy ends too soon"):
        PublishedShapes(tiny)

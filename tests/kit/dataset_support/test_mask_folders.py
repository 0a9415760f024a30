from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from celstack.errors import CelstackError
from celstack_kit.dataset_support.mask_folders import read_mask_folders


@pytest.fixture
def folder(tmp_path):
    """Three scenes, which end in a row of instance 2 and class 9."""
    for index in (2, 10, 1):
        ids = np.zeros((3, 4), np.uint8)
        image = np.full((3, 4, 3), index, np.uint8)
        for kind, value in (("images", None), ("masks", 2), ("sem_masks", 9)):
            (tmp_path / kind).mkdir(exist_ok=True)
            ids[2] = value or 0
            pixels = image if value is None else ids
            Image.fromarray(pixels).save(tmp_path / kind / f"{index}.png")
    return tmp_path


def read(folder, convert=lambda scene: scene):
    found = list(read_mask_folders(folder, convert))
    return [str(one) if isinstance(one, CelstackError) else one for one in found]


def test_scenes_come_in_the_order_of_their_numbers(folder):
    assert [found.image[0, 0, 0] for found in read(folder)] == [1, 2, 10]


def test_masks_hold_instances_and_classes(folder):
    found = read(folder)[0]

    assert found.instances.tolist() == [[0] * 4, [0] * 4, [2] * 4]
    assert found.classes.tolist() == [[0] * 4, [0] * 4, [9] * 4]
    assert {array.dtype for array in found} == {np.dtype(np.uint8)}


def test_a_scene_may_be_changed_or_left_out(folder):
    def convert(scene):
        return scene._replace(image=scene.image + 100) if scene.image.max() != 2 else None

    assert [found.image[0, 0, 0] for found in read(folder, convert)] == [101, 110]


@pytest.mark.parametrize("kind", ["images", "masks", "sem_masks"])
def test_a_damaged_file_is_named_and_the_next_scene_follows(kind, folder):
    path = folder / kind / "2.png"
    path.write_bytes(path.read_bytes()[:50])

    first, error, last = read(folder)

    assert error.startswith(f"{path}: damaged or unreadable")
    assert (first.image.max(), last.image.max()) == (1, 10)


def test_what_its_dataset_does_not_like_is_named(folder):
    def refuse(scene):
        raise CelstackError("too small")

    assert read(folder, refuse)[0] == f"{folder / 'images' / '1.png'}: too small"


def test_a_mask_of_another_size_is_named(folder):
    Image.new("L", (5, 3)).save(folder / "masks" / "1.png")

    assert read(folder)[0] == f"{folder}/masks/1.png: the mask is (3, 5), but its image (3, 4)"


def test_an_id_that_is_too_large_is_named(folder):
    Image.fromarray(np.full((3, 4), 256, np.uint16)).save(folder / "masks" / "1.png")

    said = read(folder)[0]

    assert said == f"{folder}/masks/1.png: an id of 256, but a mask has at most 255"


@pytest.mark.parametrize("kind", ["images", "masks", "sem_masks"])
def test_a_file_without_the_others_is_said(kind, folder):
    (folder / kind / "10.png").unlink()

    with pytest.raises(CelstackError, match=r"3 .*; see 10.png$"):
        read(folder)


def test_another_layout_is_said(tmp_path):
    with pytest.raises(CelstackError, match="is this the right layout"):
        read(tmp_path)


def test_folders_without_images_are_said(tmp_path):
    for kind in ("images", "masks", "sem_masks"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "Thumbs.db").touch()

    with pytest.raises(CelstackError, match=r"images: no 0.png or the like in it"):
        read(tmp_path)


def test_a_folder_that_may_not_be_listed_is_named(folder, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)

    with pytest.raises(CelstackError, match=f"^{folder / 'images'}: damaged or unreadable"):
        read(folder)

import pytest
import torch

from celstack.census import Census
from celstack.interfaces.dataset import Batch
from celstack.scene import EMPTY, Rendering, Scene


def counted(sprite, visible, sprites=2, **truth):
    """Count one batch of images of one row: visible[image][layer][pixel]."""
    sprite, visible = (
        torch.tensor(sprite),
        torch.tensor(visible, dtype=torch.float32)[:, :, None],
    )
    batch, layers, *canvas = visible.shape
    none = torch.zeros(batch, layers, 0)
    scene = Scene(sprite, none, none, torch.zeros(batch, layers, layers))
    black = torch.zeros(batch, 3, *canvas)
    stack = torch.zeros(batch, layers, 4, *canvas)
    census = Census(sprites)
    census.add(scene, Rendering(black, stack, black, visible), Batch(black, **truth))
    return census


def test_usage_is_the_number_of_layers_that_a_sprite_fills():
    census = counted([[1, 1], [EMPTY, 0]], [[[1], [0]], [[0], [1]]])

    assert census.tell(()) == {"images": 2, "usage": [1, 2]}


def test_pixels_are_counted_by_class_and_sprite():
    truth = torch.tensor([[[0, 1, 1, 1]]])

    told = counted([[1]], [[[0, 1, 1, 0]]], classes=truth).tell(("ball",))

    assert told["unit"] == "pixels"
    assert told["classes"] == ["background", "ball"]
    assert told["counts"] == [[1, 0, 0], [1, 0, 2]]
    assert told["names"] == [None, "ball"]


def test_where_only_images_have_a_class_images_are_counted():
    told = counted([[0], [1]], [[[1]], [[1]]], label=torch.tensor([1, 0])).tell(("no", "yes"))

    assert told["unit"] == "images"
    assert told["classes"] == ["no", "yes"]
    assert told["counts"] == [[0, 0, 1], [0, 1, 0]]
    assert told["names"] == ["yes", "no"]


def test_a_class_that_never_occurs_is_left_out_and_one_without_a_name_has_a_number():
    truth = torch.tensor([[[0, 2]]])

    told = counted([[0]], [[[0, 1]]], classes=truth).tell(("ball",))

    assert told["classes"] == ["background", "class 2"]
    assert told["names"] == ["class 2", None]


@pytest.mark.parametrize("names", [(), ("<script>", '"')])
def test_no_two_sprites_stand_for_one_class(names):
    truth = torch.tensor([[[1, 1, 1, 0]]])

    told = counted([[0, 1]], [[[1, 1, 0, 0], [0, 0, 1, 0]]], classes=truth).tell(names)

    assert told["names"][0] == (names[0] if names else "class 1")
    assert told["names"][1] is None

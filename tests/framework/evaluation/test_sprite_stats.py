import pytest
import torch

from celstack.evaluation.sprite_stats import SpriteStats
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
    stats = SpriteStats(sprites)
    stats.add(scene, Rendering(black, stack, black, visible), Batch(black, **truth))
    return stats


def test_usage_is_the_number_of_layers_that_a_sprite_fills():
    stats = counted([[1, 1], [EMPTY, 0]], [[[1], [0]], [[0], [1]]])

    assert stats.to_dict(()) == {"images": 2, "usage": [1, 2]}


def test_pixels_are_counted_by_class_and_sprite():
    truth = torch.tensor([[[0, 1, 1, 1]]])

    found = counted([[1]], [[[0, 1, 1, 0]]], classes=truth).to_dict(("ball",))

    assert found["unit"] == "pixels"
    assert found["classes"] == ["background", "ball"]
    assert found["counts"] == [[1, 0, 0], [1, 0, 2]]
    assert found["names"] == [None, "ball"]


def test_where_only_images_have_a_class_images_are_counted():
    found = counted([[0], [1]], [[[1]], [[1]]], label=torch.tensor([1, 0])).to_dict(
        ("no", "yes")
    )

    assert found["unit"] == "images"
    assert found["classes"] == ["no", "yes"]
    assert found["counts"] == [[0, 0, 1], [0, 1, 0]]
    assert found["names"] == ["yes", "no"]


def test_a_class_that_never_occurs_is_left_out_and_one_without_a_name_has_a_number():
    truth = torch.tensor([[[0, 2]]])

    found = counted([[0]], [[[0, 1]]], classes=truth).to_dict(("ball",))

    assert found["classes"] == ["background", "class 2"]
    assert found["names"] == ["class 2", None]


@pytest.mark.parametrize("names", [(), ("<script>", '"')])
def test_no_two_sprites_stand_for_one_class(names):
    truth = torch.tensor([[[1, 1, 1, 0]]])

    found = counted([[0, 1]], [[[1, 1, 0, 0], [0, 0, 1, 0]]], classes=truth).to_dict(names)

    assert found["names"][0] == (names[0] if names else "class 1")
    assert found["names"][1] is None


def appraised():
    """Count two batches: sprite 1 explains image 0 well, sprite 2 images 1 and 3 a little."""
    stats = SpriteStats(4)
    black = torch.zeros(2, 3, 1, 2)
    none = torch.zeros(2, 1, 0)
    for sprite, bright in (([[1], [2]], (0.8, 0.3)), ([[3], [2]], (0.0, 0.5))):
        images = black + torch.tensor(bright)[:, None, None, None]
        scene = Scene(torch.tensor(sprite), none, none, torch.zeros(2, 1, 1))
        # The first pixel is shown as it is, the second is left to the backdrop.
        shown, visible = images.clone(), torch.zeros(2, 1, 1, 2)
        shown[..., 1], visible[..., 0] = 0.0, 1.0
        rendering = Rendering(shown, torch.zeros(2, 1, 4, 1, 2), black, visible)
        stats.add(scene, rendering, Batch(images))
    return stats


def test_a_sprite_is_worth_what_it_explains_better_than_the_background():
    reduction = appraised().error_reduction

    expected = torch.tensor([0.0, 0.8**2 / 2, (0.3**2 + 0.5**2) / 2, 0.0])
    torch.testing.assert_close(reduction.float(), expected)


def test_members_are_the_images_that_owe_a_sprite_the_largest_share():
    exemplars = appraised().exemplars

    # What is shown of images 1 and 3 is half of either; image 2 is black, and owes nothing.
    assert [[image for _, image in one] for one in exemplars] == [[], [0], [1, 3], [2]]
    assert [round(share, 3) for share, _ in exemplars[2]] == [0.5, 0.5]
    assert exemplars[3] == [(0.0, 2)]


def test_the_best_come_first_and_who_was_never_used_does_not_come():
    assert appraised().best(8) == [1, 2, 3]
    assert appraised().best(2) == [1, 2]


def test_no_more_members_are_remembered_than_are_shown():
    stats = counted([[0]] * 5, [[[1]]] * 5)

    assert [image for _, image in stats.exemplars[0]] == [0, 1, 2]

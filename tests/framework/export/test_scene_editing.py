"""Scenes edited as in the paper's Fig. 5, on a canvas of 32 x 32 with one white square."""

import pytest
import torch

import celstack
from celstack import CelstackError, Decomposer
from celstack.export.edit_figure import COLUMNS, draw_figure, edit_scene, fullest_image
from celstack.export.scene_editing import (
    move_objects,
    object_centers,
    recolor_sprites,
    resize_objects,
    swap_sprites,
)
from celstack.scene import EMPTY, Scene
from celstack.testing.model import PlainSelector
from celstack.testing.parts import PlainCompositor, PlainPredictor, PlainPrototype, PlainWarp
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.tps import Tps


def model(layer=(), sprite=(), count=2):
    """Make a model whose sprites are white, opaque squares of half the brightness."""
    decomposer = Decomposer(
        sprites=PlainPrototype(count),
        compositor=PlainCompositor(layers=2),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        layer_transforms=layer,
        sprite_transforms=sprite,
    )
    decomposer.prepare(torch.rand(2, 3, 32, 32))
    with torch.no_grad():
        decomposer.sprites.pixels[:] = 0.5
        decomposer.sprites.pixels[:, 3] = 1.0
    return decomposer


def scene_of(decomposer, sprite=(0, EMPTY)):
    """Put sprites into the layers, in their rest pose."""
    outline = decomposer.outline()
    return Scene(
        sprite=torch.tensor([list(sprite)]),
        sprite_params=torch.zeros(1, 2, outline.sprite_params),
        layer_params=torch.zeros(1, 2, outline.layer_params),
        occlusion=torch.ones(2, 2).tril(-1)[None],
    )


def shift(x, y):
    return torch.tensor([[[x, y], [0.0, 0.0]]])


def area(decomposer, scene):
    return decomposer.render(scene).layers[0, 0, -1].sum().item()


def test_other_sprites_are_so_many_numbers_later_and_empty_stays_empty():
    decomposer = model(count=3)

    swapped = swap_sprites(decomposer, scene_of(decomposer, (2, EMPTY)), torch.tensor([[2, 1]]))

    assert swapped.sprite.tolist() == [[1, EMPTY]]


def test_a_single_sprite_cannot_be_another():
    decomposer = model(count=1)

    assert swap_sprites(decomposer, scene_of(decomposer), torch.tensor([[1, 1]])) is None


@pytest.mark.parametrize("chain", ["layer", "sprite"])
def test_an_object_takes_the_colour_it_is_given_whatever_its_brightness(chain):
    decomposer = model(**{chain: [Color(), Position()]})
    colours = torch.tensor([[[0.9, 0.2, 0.4], [0.0, 0.0, 0.0]]])

    edited = recolor_sprites(decomposer, scene_of(decomposer), colours)

    middle = decomposer.render(edited).image[0, :, 16, 16]
    torch.testing.assert_close(middle, torch.tensor([0.9, 0.2, 0.4]), atol=0.01, rtol=0)


@pytest.mark.parametrize(
    "transforms", [[Position()], [Projective()], [Color(), Position()], [Projective(), Tps()]]
)
@pytest.mark.parametrize("chain", ["layer", "sprite"])
def test_an_object_goes_right_and_down_and_stays_what_it_is(chain, transforms):
    decomposer = model(**{chain: transforms})
    small = resize_objects(decomposer, scene_of(decomposer), 0.5)

    moved = move_objects(decomposer, small, shift(0.25, -0.375))

    went = object_centers(decomposer, moved) - object_centers(decomposer, small)
    torch.testing.assert_close(went[0, 0], torch.tensor([0.25, -0.375]), atol=0.01, rtol=0)
    assert area(decomposer, moved) == pytest.approx(area(decomposer, small), rel=0.02)


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_an_object_grows_where_it_is(factor):
    decomposer = model([Position()])
    placed = move_objects(decomposer, scene_of(decomposer), shift(0.125, 0.0625))

    resized = resize_objects(decomposer, placed, factor)

    ratio = area(decomposer, resized) / area(decomposer, placed)
    assert ratio == pytest.approx(factor**2, rel=0.1)
    went = object_centers(decomposer, resized) - object_centers(decomposer, placed)
    assert went[0, 0].abs().max() < 0.02


def test_editing_leaves_all_other_parameters_alone():
    decomposer = model([Color(), Position()])
    scene = scene_of(decomposer)
    scene.layer_params[0, 0, :6] = 0.1

    moved = move_objects(decomposer, scene, shift(0.25, 0.0))
    coloured = recolor_sprites(decomposer, moved, torch.full((1, 2, 3), 0.3))

    assert torch.equal(moved.layer_params[..., :6], scene.layer_params[..., :6])
    assert torch.equal(coloured.layer_params[..., 6:], moved.layer_params[..., 6:])
    assert torch.equal(scene.layer_params[0, 0, 6:], torch.zeros(3))


EDITS = {
    "move": lambda decomposer, scene: move_objects(decomposer, scene, (0.25, 0.0)),
    "resize": lambda decomposer, scene: resize_objects(decomposer, scene, 0.5),
    "recolor": lambda decomposer, scene: recolor_sprites(decomposer, scene, (0.9, 0.2, 0.4)),
    "swap": lambda decomposer, scene: swap_sprites(decomposer, scene, 1),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("chain", ["layer", "sprite"])
def test_a_scene_that_carries_gradients_is_edited_like_any_other(chain, edit):
    decomposer = model(**{chain: [Color(), Position()]})
    scene = scene_of(decomposer)
    weight = torch.ones((), requires_grad=True)
    predicted = scene.evolve(
        sprite_params=scene.sprite_params * weight, layer_params=scene.layer_params * weight
    )

    edited, same = edit(decomposer, predicted), edit(decomposer, scene)

    assert torch.equal(edited.sprite, same.sprite)
    assert torch.equal(edited.layer_params, same.layer_params)
    assert torch.equal(edited.sprite_params, same.sprite_params)


def test_one_value_stands_for_all_layers():
    decomposer = model([Color(), Position()])
    scene = scene_of(decomposer, (0, 1))

    one = move_objects(decomposer, scene, (0.25, -0.125))
    each = move_objects(decomposer, scene, torch.tensor([[[0.25, -0.125]] * 2]))

    assert torch.equal(one.layer_params, each.layer_params)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (
            lambda d, s: move_objects(d, s, torch.zeros(1, 5, 2)),
            r"by: has shape \(1, 5, 2\); this scene needs \(1, 2, 2\), or one value for",
        ),
        (
            lambda d, s: recolor_sprites(d, s, (1.0, 0.0)),
            r"colors: has shape \(2,\); this scene",
        ),
        (lambda d, s: move_objects(d, s, "left"), "by: not numbers: "),
        (lambda d, s: move_objects(d, s, (0.0, float("nan"))), "by: must be finite numbers"),
        (lambda d, s: swap_sprites(d, s, 0.5), "by: must be integers, not torch.float32"),
        (lambda d, s: swap_sprites(d, s, torch.zeros(3, 5).long()), r"by: has shape \(3, 5\)"),
        (lambda d, s: resize_objects(d, s, 0.0), "factor=0.0: must be a number of more than 0"),
        (
            lambda d, s: d.render(s.evolve(sprite=torch.tensor([[0, 7]]))),
            "scene.sprite: there is no sprite 7; this model has sprites 0 to 1, or -1 for an",
        ),
        (
            lambda d, s: move_objects(d, s.evolve(sprite=torch.tensor([[-2, 0]])), (0, 1)),
            "scene.sprite: there is no sprite -2",
        ),
        (
            lambda d, s: d.render(s.evolve(layer_params=torch.zeros(1, 2, 4))),
            r"scene.layer_params: has shape \(1, 2, 4\); .* this model needs \(1, 2, 9\)",
        ),
    ],
)
def test_a_bad_edit_is_one_line(edit, line):
    decomposer = model([Color(), Position()]).eval()

    with pytest.raises(CelstackError, match=line) as error:
        edit(decomposer, scene_of(decomposer))

    assert "\n" not in str(error.value)


def test_an_edit_that_changes_nothing_returns_the_scene():
    decomposer = model([Color(), Position()]).eval()
    scene = scene_of(decomposer)

    assert move_objects(decomposer, scene, (0, 0)) is scene
    assert resize_objects(decomposer, scene, 1) is scene


def test_edits_are_public():
    assert celstack.move_objects is move_objects
    assert {"swap_sprites", "recolor_sprites", "resize_objects"} <= set(celstack.__all__)


def test_what_no_transform_can_do_is_not_done():
    decomposer = model()
    scene = scene_of(decomposer)

    assert recolor_sprites(decomposer, scene, torch.ones(1, 2, 3)) is None
    assert move_objects(decomposer, scene, shift(0.5, 0.0)) is None
    assert resize_objects(decomposer, scene, 0.5) is None


def test_a_transform_that_only_moves_cannot_resize():
    decomposer = model([PlainWarp()])

    assert resize_objects(decomposer, scene_of(decomposer), 0.5) is None


def test_a_transform_that_rests_in_this_stage_is_not_used():
    decomposer = model([Color(), Position()])
    decomposer.activate(["position"])

    assert recolor_sprites(decomposer, scene_of(decomposer), torch.ones(1, 2, 3)) is None


def test_the_figure_has_the_four_ways_of_the_paper():
    decomposer = model([Color(), Position()], count=3)
    scene = scene_of(decomposer, (0, 1))

    rows = edit_scene(decomposer, scene)

    ways = ["other sprites", "other colors", "other positions", "other sizes"]
    assert [row.title for row in rows] == ways
    assert len({tuple(varied.sprite[0].tolist()) for varied in rows[0].scenes}) > 2
    for row in rows[1:]:
        images = [decomposer.render(varied).image.flatten().tolist() for varied in row.scenes]
        assert len({tuple(image) for image in images}) == COLUMNS
    picture = draw_figure(decomposer, torch.rand(3, 32, 32), scene, rows)
    assert picture.width > COLUMNS * 128
    assert picture.height > 5 * 128


def test_the_figure_says_what_a_model_cannot_do():
    decomposer = model([Position()], count=1)

    rows = {row.title: row for row in edit_scene(decomposer, scene_of(decomposer))}

    assert rows["other sprites"].unsupported == "this run has a single sprite"
    assert "changes the color" in rows["other colors"].unsupported
    assert rows["other colors"].scenes == []
    assert rows["other positions"].unsupported == ""
    assert len(rows["other positions"].scenes) == COLUMNS


def test_of_equals_the_image_that_shows_most_is_varied():
    decomposer = model([Position()])
    large = scene_of(decomposer)
    small = resize_objects(decomposer, large, 0.5)
    fields = ("sprite", "sprite_params", "layer_params", "occlusion")
    joined = {name: torch.cat([getattr(s, name) for s in (small, large)]) for name in fields}

    assert fullest_image(decomposer, Scene(**joined)) == 1


def test_the_image_with_most_objects_is_varied():
    decomposer = model()
    scenes = scene_of(decomposer, (0, EMPTY)), scene_of(decomposer, (0, 1))
    both = scenes[0].evolve(
        sprite=torch.cat([scene.sprite for scene in scenes]),
        sprite_params=torch.zeros(2, 2, 0),
        layer_params=torch.zeros(2, 2, 0),
        occlusion=torch.zeros(2, 2, 2),
    )

    assert fullest_image(decomposer, both) == 1

"""Matching finds planted scenes, and says so in the transforms' own parameters."""

import pytest
import torch

from celstack import EMPTY, CelstackError, Decomposer, Scene
from celstack.model.objective import squared_error
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.generated import Generated
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.placement import Placement
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

CANVAS = (20, 26)
SIZE = (6, 5)


def model(
    selector,
    *,
    compositor=None,
    layer=(Color, Position),
    sprite=(),
    background=None,
    size=SIZE,
    canvas=CANVAS,
    sprites=None,
):
    """Make a model of four random sprites with hard masks."""
    torch.manual_seed(0)
    made = Decomposer(
        sprites=sprites or Pixels(count=4, size=size),
        compositor=compositor or Ordered(layers=2),
        selector=selector,
        layer_transforms=[make() for make in layer],
        sprite_transforms=[make() for make in sprite],
        backgrounds=background,
        background_transforms=[Color()] if background else [],
    )
    made.prepare(torch.rand(2, 3, *canvas))
    with torch.no_grad():
        if isinstance(made.sprites, Pixels):
            made.sprites.colour.copy_(0.5 + 0.5 * torch.rand_like(made.sprites.colour))
            made.sprites.mask.copy_((torch.rand_like(made.sprites.mask) < 0.8).float())
        if background:
            made.backgrounds.colour.copy_(0.3 + 0.2 * torch.rand(1, 3, *canvas))
    return made.eval()


def plant(made, sprite, rows, columns, gains, background_gain=None):
    """Say in parameters where sprites are, one image after the other, layer by layer."""
    placing = Placement(made, made.sprites.images().shape[2:])
    shape = torch.tensor(rows).shape
    gains = torch.tensor(gains).expand(*shape, 3).flatten(0, 1)
    pose = placing.pose_at_corner(torch.tensor(rows).flatten(), torch.tensor(columns).flatten())
    of_sprite, of_layer = placing.params(
        pose, torch.stack([gains, torch.zeros_like(gains)], dim=1)
    )
    behind = {}
    if background_gain is not None:
        params = made.background_chain.tint(torch.tensor([background_gain]))
        behind = {
            "background": torch.zeros(shape[0], dtype=torch.int64),
            "background_params": params.expand(shape[0], -1),
        }
    return Scene(
        sprite=torch.tensor(sprite),
        sprite_params=of_sprite.unflatten(0, shape),
        layer_params=of_layer.unflatten(0, shape),
        occlusion=torch.ones(shape[1], shape[1]).tril(-1).expand(shape[0], -1, -1),
        **behind,
    )


# Three images of two layers; the third image's sprites reach over the edge.
SCENES = {
    "sprite": [[0, 1], [2, 2], [3, 1]],
    "rows": [[1, 10], [12, 3], [-2, 17]],
    "columns": [[3, 15], [2, 20], [4, 23]],
    "gains": [[[0.9, 0.2, 0.5], [0.4, 0.8, 0.1]]],
}


def test_a_sprite_is_put_at_whole_pixels_without_blur():
    made = model(Matching())
    image = made.render(plant(made, [[1, EMPTY]], [[4, 0]], [[7, 0]], 0.5)).image[0].detach()

    sprite = made.sprites.images()[1].detach()

    there = image[:, 4:10, 7:12]
    torch.testing.assert_close(there, 0.5 * sprite[:3] * sprite[3:], atol=1e-5, rtol=0.0)
    assert image.sum() == pytest.approx(float(there.sum()), abs=1e-3)


@pytest.mark.parametrize("compositor", [Ordered, Occlusion])
@pytest.mark.parametrize("layer", [(Color, Position), (Position, Color), (Color, Affine)])
@pytest.mark.parametrize("with_background", [False, True])
def test_a_planted_scene_is_found(compositor, layer, with_background):
    background = Pixels(count=1) if with_background else None
    made = model(
        Matching(sweeps=4), compositor=compositor(layers=2), layer=layer, background=background
    )
    gains = [1.2, 0.4, 0.8] if with_background else None
    planted = plant(made, **SCENES, background_gain=gains)
    images = made.render(planted).image

    found = made.explain(images)

    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)
    assert found.sprite.sort(1).values.tolist() == planted.sprite.sort(1).values.tolist()


@pytest.mark.parametrize("sprite", [(Similarity,), (Affine, Color), (Tps,)])
def test_transforms_of_the_sprite_stay_out_of_it_or_help(sprite):
    layer = (Position,) if Color in sprite else (Color, Position)
    made = model(Matching(sweeps=3), layer=layer, sprite=sprite)
    images = made.render(plant(made, **SCENES)).image

    found = made.explain(images)

    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)


def test_without_a_tint_colors_stay_as_they_are():
    made = model(Matching(), layer=(Position,))
    images = made.render(plant(made, **{**SCENES, "gains": 1.0})).image

    found = made.explain(images)

    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)


def test_layers_stay_empty_where_there_is_nothing():
    made = model(Matching(empty_cost=1e-4))
    planted = plant(made, **SCENES)
    planted = planted.evolve(sprite=torch.tensor([[0, EMPTY], [EMPTY, EMPTY], [3, 1]]))
    images = made.render(planted).image

    found = made.explain(images)

    assert (found.sprite != EMPTY).sum(1).tolist() == [1, 0, 2]
    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)


def test_a_price_above_what_a_sprite_saves_leaves_all_empty():
    made = model(Matching(empty_cost=1.0))

    assert (made.explain(torch.rand(2, 3, *CANVAS)).sprite == EMPTY).all()


@pytest.mark.parametrize("compositor", [Ordered, Occlusion])
@pytest.mark.parametrize("front", [0, 1])
def test_the_order_of_sprites_that_overlap_is_found(compositor, front):
    made = model(Matching(sweeps=4), compositor=compositor(layers=2))
    with torch.no_grad():
        made.sprites.mask.fill_(1.0)
        made.sprites.colour.copy_(torch.rand(4, 3, 1, 1).expand_as(made.sprites.colour))
    sprite, rows, columns = [0, 1], [5, 8], [5, 7]
    turn = slice(None, None, 1 if front else -1)
    planted = plant(made, [sprite[turn]], [rows[turn]], [columns[turn]], 1.0)
    images = made.render(planted).image

    found = made.explain(images)

    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)


def test_what_is_chosen_counts_with_the_noise_that_rendering_adds():
    made = model(Matching(empty_cost=1e-3))
    images = made.render(plant(made, **SCENES)).image
    noise = made.draw_noise(0.4)

    for allow_empty in (False, True):
        scene = made.selector.explain(images, made, noise, allow_empty)
        cost = squared_error(images, made.render(scene, noise).image)
        nothing = squared_error(images, torch.zeros_like(images))
        assert (cost < 0.3 * nothing).all()


def test_more_sweeps_never_hurt():
    images = torch.rand(6, 3, *CANVAS)
    costs = []
    for sweeps in (1, 2, 6):
        made = model(Matching(sweeps=sweeps), compositor=Occlusion(layers=3))
        costs.append(squared_error(images, made.render(made.explain(images)).image))

    assert (costs[1] <= costs[0] + 1e-6).all()
    assert (costs[2] <= costs[1] + 1e-6).all()


def test_any_prototype_will_do():
    made = model(Matching(), sprites=Generated(count=3, size=(5, 5)))

    scene = made.explain(torch.rand(2, 3, *CANVAS))

    assert torch.isfinite(made.render(scene).image).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_blank_images_are_explained_by_nothing(value):
    made = model(Matching(empty_cost=1e-4), background=Pixels(count=1))
    with torch.no_grad():
        made.backgrounds.colour.fill_(0.5)

    images = torch.full((2, 3, *CANVAS), value)
    scene = made.explain(images)

    assert (scene.sprite == EMPTY).all()
    torch.testing.assert_close(made.render(scene).image, images, atol=1e-2, rtol=0.0)


def test_one_image_is_explained_as_it_is_among_others():
    made = model(Matching(sweeps=3))
    images = torch.cat([made.render(plant(made, **SCENES)).image, torch.rand(1, 3, *CANVAS)])

    together = made.explain(images)

    for index in range(len(images)):
        alone = made.explain(images[index : index + 1])
        assert torch.equal(alone.sprite[0], together.sprite[index])


def test_a_model_that_cannot_place_sprites_is_refused():
    with pytest.raises(CelstackError, match=r"add a transform that can place them"):
        model(Matching(), layer=(Color,), sprite=(Tps,))


def test_sprites_larger_than_the_canvas_are_refused():
    with pytest.raises(CelstackError, match=r"9 x 9 pixels cannot be put on a canvas of 8 x 8"):
        model(Matching(), size=(9, 9), canvas=(8, 8))


def test_sprites_may_be_as_large_as_the_canvas():
    made = model(Matching(), size=(8, 8), canvas=(8, 8), compositor=Ordered(layers=1))
    planted = plant(made, [[2]], [[0]], [[0]], 1.0)
    images = made.render(planted).image

    found = made.explain(images)

    torch.testing.assert_close(made.render(found).image, images, atol=1e-4, rtol=0.0)


def two_bars():
    """Make bars that cross, and a square. Both bars together are nearly square.

    So a square explains them better at first than either bar does.
    """
    made = model(
        Matching(sweeps=3, empty_cost=1e-5),
        layer=(Position,),
        sprites=Pixels(count=3, size=(7, 7)),
    )
    with torch.no_grad():
        made.sprites.colour.fill_(1.0)
        made.sprites.mask.zero_()
        made.sprites.mask[0, 0, 1:6] = 1.0
        made.sprites.mask[1, 0, :, 1:6] = 1.0
        made.sprites.mask[2] = 1.0
    return made


def test_another_start_may_end_better():
    made = two_bars()
    planted = plant(made, [[0, 1]], [[6, 6]], [[9, 9]], 1.0)
    images = made.render(planted).image.detach()
    once = squared_error(images, made.render(made.explain(images)).image)

    made.selector.starts = 3
    found = made.explain(images)

    assert (squared_error(images, made.render(found).image) < 1e-6).all()
    assert (once > 1e-3).all()
    assert sorted(found.sprite[0].tolist()) == [0, 1]


def test_learning_takes_the_first_start():
    made = two_bars().train()
    images = made.render(plant(made, [[0, 1]], [[6, 6]], [[9, 9]], 1.0)).image.detach()
    first = made.explain(images)

    made.selector.starts = 3

    torch.testing.assert_close(made.explain(images).sprite, first.sprite)

"""A browser renders scenes as Python does, to two of 255 steps on every pixel."""

import pytest
import torch

from celstack import BrowserCode, Warp
from celstack.registry.catalog import Catalog
from celstack.scene import EMPTY
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.identity import Identity
from celstack_kit.transforms.light import Light
from celstack_kit.transforms.morphological import Morphological
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

STEP = 1 / 255
RENDER = """() => {
    const { model, stage } = celstack.editor;
    return model.examples.map(({ scene }) => {
        const { image } = stage.painter.render(scene);
        const picture = celstack.toPicture(image, model.channels, model.height, model.width);
        return [Array.from(image), Array.from(picture.data)];
    });
}"""
WAYS = {
    "affine": [Affine],
    "color": [Color],
    "identity": [Identity],
    "morphological": [Morphological, lambda: Morphological(size=5)],
    "position": [Position],
    "projective": [Projective],
    "similarity": [Similarity],
    "light": [Light, lambda: Light(cells=7)],
    "tps": [Tps, lambda: Tps(points=2), lambda: Tps(points=5)],
}
CASES = [(name, way) for name, ways in WAYS.items() for way in ways]


def differences(page, made, scene):
    """Return how far the browser is from Python: in values, and in steps of pictures."""
    with torch.no_grad():
        wanted = made.render(scene).image
    values, pictures = zip(*page.evaluate(RENDER), strict=True)
    shown = torch.tensor(pictures).view(len(scene), *made.canvas, 4)
    assert (shown[..., 3] == 255).all()
    rounded = (wanted.clamp(0, 1) * 255).round().permute(0, 2, 3, 1)
    away = torch.tensor(values).view_as(wanted) - wanted
    return away.abs().max().item(), (shown[..., :3] - rounded).abs().max().item()


@pytest.fixture
def check(open_page, edited, scenes):
    def check_scene(made, scene=None):
        scene = scenes(made) if scene is None else scene
        away, steps = differences(open_page(edited(made, scene)), made, scene)
        assert away <= STEP
        assert steps <= 2

    return check_scene


def test_every_transform_of_the_kit_is_tried():
    ours = {
        p.name for p in Catalog().plugins if (p.kind, p.package) == ("transform", "celstack")
    }

    assert set(WAYS) == ours


@pytest.mark.parametrize(("name", "way"), CASES, ids=[name for name, _ in CASES])
def test_of_sprites_of_layers_and_of_backgrounds(name, way, model, check):
    check(model(sprite=[way()], layer=[way()], background=[way()]))


@pytest.mark.parametrize("name", ["morphological", "projective", "tps", "similarity", "color"])
def test_far_from_the_rest_pose(name, model, check, scenes):
    way = WAYS[name][0]
    made = model(layer=[way()], background=[way()])

    check(made, scenes(made, spread=3.0))


@pytest.mark.parametrize("canvas", [(24, 24), (13, 30), (30, 13)])
def test_of_chains_on_canvases_of_any_shape(canvas, model, check):
    check(
        model(
            sprite=[Morphological(), Tps(), Projective()],
            layer=[Color(), Position(), Color(), Similarity()],
            background=[Color(), Affine()],
            canvas=canvas,
            back_size=(11, 8),
        )
    )


def test_in_grey(model, check):
    check(model(layer=[Color(), Position()], background=[Color()], channels=1))


def test_without_a_background(model, check):
    check(model(layer=[Color(), Position()], backgrounds=0))


def test_with_a_background_that_the_scene_leaves_out(model, check, scenes):
    made = model(layer=[Position()])

    check(made, scenes(made).evolve(background=None, background_params=None))


def test_with_empty_layers(model, check, scenes):
    made = model(layer=[Position()])
    scene = scenes(made)
    some = scene.sprite.clone()
    some[0, 1], some[1] = EMPTY, EMPTY

    check(made, scene.evolve(sprite=some))


def test_with_layers_that_hide_each_other_in_part(model, check, scenes):
    made = model(layer=[Position()])
    scene = scenes(made)
    hides = torch.rand_like(scene.occlusion).tril(-1)

    check(made, scene.evolve(occlusion=hides + (1 - hides.mT).triu(1)))


def test_with_masks_far_out_of_bounds(model, check):
    made = model(layer=[Position()])
    with torch.no_grad():
        made.sprites.mask.mul_(40).sub_(10)

    check(made)


def test_with_transforms_that_do_not_work_yet(model, check):
    made = model(sprite=[Affine()], layer=[Color(), Position()], background=[Color()])
    made.activate(["color"])

    check(made)


class Mirror(Warp):
    """A transform of somebody else, who has thought of browsers."""

    num_params = 1

    def pull(self, points, params):
        return points * torch.cat([1 + params, torch.ones_like(params)], dim=1)[:, None]

    def browser(self):
        return BrowserCode(
            """({ least }) => ({
                pull(points, [squeeze]) {
                    for (let at = 0; at < points.length; at += 2) {
                        points[at] *= least + squeeze;
                    }
                },
            })""",
            {"least": 1},
        )


def test_of_a_transform_that_is_not_ours(model, check):
    check(model(layer=[Mirror(), Position()]))

import attrs
import pytest
import torch

import celstack
from celstack import Assembly, CelstackError, Stage, Transforms
from celstack.testing.parts import PlainPrototype
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.exhaustive import Exhaustive
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


def assembled(**changes):
    return Assembly(
        **{
            "dataset": Tetrominoes(count=16, test_count=4),
            "sprites": Pixels(count=2, size=(8, 8), jitter=0.2),
            "transforms": Transforms(layer=[Color(), Position()]),
            "compositor": Ordered(layers=3),
            "selector": Greedy(),
            "predictor": Network(encoder=Strided(width=2, features=4), hidden=4),
            "stages": [Stage(steps=2)],
            **changes,
        }
    )


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = assembled().decomposer()
    model.prepare(torch.rand(4, 3, 35, 35))
    return model.eval()


def test_explain_and_render_are_two_verbs(model):
    images = torch.rand(2, 3, 35, 35)

    scene = model.explain(images)
    rendering = model.render(scene)

    assert len(scene) == 2
    assert rendering.image.shape == images.shape
    assert rendering.layers.shape == (2, 3, 4, 35, 35)
    assert rendering.visible.shape == (2, 3, 35, 35)


@pytest.mark.parametrize("shape", [(2, 3, 40, 40), (2, 1, 35, 35), (2, 3, 35, 36)])
def test_images_of_another_shape_are_refused_in_training(model, shape):
    with pytest.raises(CelstackError, match=r"made for images of shape \(3, 35, 35\)"):
        model.train().explain(torch.rand(shape))


@pytest.mark.parametrize("shape", [(2, 3, 40, 40), (2, 1, 35, 35), (2, 3, 35, 36)])
def test_images_of_another_shape_are_converted_in_evaluation(model, shape):
    images = torch.rand(shape)

    scene = model.explain(images)

    expected = model.explain(celstack.read_images(images, model))
    assert torch.equal(scene.sprite, expected.sprite)
    assert torch.equal(scene.layer_params, expected.layer_params)


def test_a_model_that_is_not_prepared_says_so():
    with pytest.raises(CelstackError, match="not prepared"):
        assembled().decomposer().explain(torch.rand(1, 3, 35, 35))


def test_a_scene_can_be_edited_and_rendered_again(model):
    scene = model.explain(torch.rand(2, 3, 35, 35))

    swapped = scene.evolve(sprite=1 - scene.sprite)
    reordered = scene.evolve(occlusion=scene.occlusion.mT)

    assert not torch.equal(model.render(swapped).image, model.render(scene).image)
    assert not torch.equal(model.render(reordered).image, model.render(scene).image)


def test_an_empty_layer_shows_nothing(model):
    scene = model.explain(torch.rand(2, 3, 35, 35))

    empty = scene.evolve(sprite=torch.full_like(scene.sprite, celstack.EMPTY))

    assert not model.render(empty).image.any()


def test_each_run_has_a_model_of_its_own():
    assembly = assembled()
    first = celstack.run(assembly)
    before = first.decomposer.sprites.images().detach().clone()

    second = celstack.run(attrs.evolve(assembly, seed=1))

    assert torch.equal(first.decomposer.sprites.images(), before)
    assert not torch.equal(second.decomposer.sprites.images(), before)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stages": []}, "stages: there must be at least one"),
        (
            {"stages": [Stage(steps=1, transforms=["positon"])]},
            r"stages\[0\]\.transforms\[0\]: the recipe has no transform 'positon'; "
            r"did you mean 'position'\? \(it has: color, position\)",
        ),
        ({"predictor": None}, "selector: greedy chooses among predictions"),
        ({"selector": Exhaustive(most=7)}, "selector: 2 choices on each of 3 layers"),
        ({"compositor": Ordered(layers=2)}, "compositor.layers: 2 cannot hold the 3 objects"),
        ({"transforms": Transforms()}, "sprites.size: .* nothing places it"),
        (
            {"transforms": Transforms(layer=[Position()], background=[Color()])},
            "transforms.background: there are no backgrounds",
        ),
        (
            {"transforms": Transforms(), "stages": [Stage(steps=1, freeze_sprites=True)]},
            "stages.0.: sprites are frozen",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_python_too(changes, problem):
    with pytest.raises(CelstackError, match=problem):
        celstack.run(assembled(**changes))


def test_a_folder_is_enough_to_keep_a_run(tmp_path):
    trained = celstack.run(assembled(), tmp_path)

    assert (trained.folder / "checkpoint.pt").is_file()
    assert trained.folder.parent.parent == tmp_path


def test_a_last_batch_of_one_image_is_no_reason_to_stop():
    training = celstack.Training(batch_size=15)

    trained = celstack.run(assembled(training=training))

    assert torch.isfinite(trained.decomposer.sprites.images()).all()


class Faint(Ordered):
    """Layers in front of others hide only half of them."""

    def compose(self, layers, backdrop, occlusion):
        alpha = layers[:, :, -1]
        visible = alpha * (1 - 0.5 * occlusion[:, :, :, None, None] * alpha[:, :, None]).prod(1)
        uncovered = (1 - alpha).prod(1)[:, None]
        return (visible[:, :, None] * layers[:, :, :-1]).sum(1) + uncovered * backdrop, visible


@pytest.mark.parametrize("compositor", [Ordered(layers=3), Faint(layers=3)])
def test_a_compositor_is_trained_by_the_rule_by_which_it_is_evaluated(compositor):
    torch.manual_seed(0)
    model = assembled(compositor=compositor).decomposer()
    model.prepare(torch.rand(4, 3, 35, 35))
    scene = model.explain(torch.rand(2, 3, 35, 35))
    noise = model.draw_noise(0.3)

    trained, masks = model.reconstruct(scene, noise)
    evaluated = model.render(scene, noise).image

    torch.testing.assert_close(trained, evaluated)
    _, _, expected = model.render_layers(scene, noise)
    torch.testing.assert_close(masks, expected)
    gradients = [
        torch.autograd.grad(image.square().sum(), model.sprites.colour, retain_graph=True)[0]
        for image in (trained, evaluated)
    ]
    torch.testing.assert_close(*gradients)


def test_the_size_of_sprites_is_known_before_they_are_made():
    assert PlainPrototype().size is None
    assert Pixels(count=1, size=(3, 4)).size == (3, 4)

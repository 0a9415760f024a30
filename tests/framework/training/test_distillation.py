"""A predictor is taught what another selector finds."""

import math
from itertools import chain

import pytest
import torch

import naive
from celstack.interfaces.predictor import Prediction
from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.scene import EMPTY, Scene
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack.training.distillation import distillation_loss, distillation_step, match_layers
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.morphological import Morphological
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity

LAYERS = 3


class Knowing(Selector):
    """Says what it was told, whatever the images, and keeps what it was asked."""

    def __init__(self, scene, empty_cost=None):
        self.scene, self.empty_cost = scene, empty_cost

    def explain(self, images, decomposer, noise, allow_empty):
        self.asked = (noise, allow_empty)
        return self.scene


def make(compositor, background=False):
    """Make a model of all kinds of transforms, and predictions that are not at rest."""
    torch.manual_seed(0)
    model = Decomposer(
        sprites=Pixels(count=2, size=(5, 6), mask_sigma=2.0, jitter=0.2),
        sprite_transforms=[Morphological(), Similarity()],
        layer_transforms=[Color(), Position()],
        backgrounds=Pixels(count=2, jitter=0.2) if background else None,
        background_transforms=[Color(), Affine()] if background else [],
        compositor=compositor,
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=4, features=8), hidden=8),
    ).double()
    images = torch.rand(5, 3, 9, 11).double()
    model.prepare(images.float())
    model.double()
    with torch.no_grad():
        for parameter in model.predictor.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    torch.manual_seed(1)  # what is drawn next does not depend on how many weights there are
    return model, images


def some_scene(model, batch=5):
    """Draw scenes, some of whose layers are empty."""
    sizes = model.outline()
    order = torch.rand(batch, LAYERS).argsort(1)
    return Scene(
        sprite=torch.randint(EMPTY, 2, (batch, LAYERS)),
        sprite_params=0.3 * torch.randn(batch, LAYERS, sizes.sprite_params).double(),
        layer_params=0.3 * torch.randn(batch, LAYERS, sizes.layer_params).double(),
        occlusion=(order[:, :, None] > order[:, None]).double(),
        background=torch.randint(2, (batch,)) if sizes.backgrounds else None,
        background_params=(
            0.3 * torch.randn(batch, sizes.background_params).double()
            if sizes.backgrounds
            else None
        ),
    )


def everywhere(batch=5):
    return torch.ones(batch, LAYERS, LAYERS, dtype=torch.bool)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("compositor", [Ordered, Occlusion])
def test_it_is_what_the_plainest_transcription_says(compositor, background):
    model, images = make(compositor(layers=LAYERS), background)
    scene = some_scene(model)
    # Where the order of layers is fixed, layers that overlap are not paired freely.
    overlap = everywhere() & (torch.rand(5, LAYERS, LAYERS) < 0.7)
    overlap = (overlap & overlap.mT) if compositor is Occlusion else everywhere() & False
    prediction = model.predict(images)

    told = distillation_loss(model, prediction, scene, overlap)

    terms = [naive.teaching(model, prediction, scene, overlap, b) for b in range(5)]
    lists = [list(chain(*term)) for term in zip(*terms, strict=True)]
    assert [bool(values) for values in lists] == [True, compositor is Occlusion, background]
    plain = sum(sum(values) / len(values) for values in lists if values)
    torch.testing.assert_close(told, plain, rtol=1e-9, atol=0.0)
    weights = [p for p in model.predictor.parameters() if p.requires_grad]
    kept = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    gradients = torch.autograd.grad(told, weights, **kept)
    torch.testing.assert_close(gradients, torch.autograd.grad(plain, weights, **kept))


@pytest.mark.parametrize("background", [False, True])
def test_who_says_what_the_scene_says_is_right(background):
    model, _ = make(Ordered(layers=LAYERS), background)
    scene = some_scene(model)

    said = in_other_words(model, scene, [2, 0, 1])

    assert distillation_loss(model, said, scene, everywhere() & False).item() < 1e-20


def in_other_words(model, scene, order):
    """Predict exactly what a scene says, but with its layers in another order."""
    backgrounds = model.outline().backgrounds
    background_params = torch.zeros(len(scene), 0, 0).double()
    if backgrounds:
        background_params = scene.background_params[:, None].expand(-1, backgrounds, -1)
    return Prediction(
        scene.sprite_params[:, order, None].expand(-1, -1, 2, -1),
        scene.layer_params[:, order],
        background_params,
        torch.zeros(len(scene), model.compositor.num_logits).double(),
    )


def test_a_turn_once_around_is_no_difference():
    model, _ = make(Ordered(layers=LAYERS))
    scene = some_scene(model)
    angle = 10 + 1  # after the parameters of the morphological, the log of the scale
    around = scene.sprite_params.clone()
    around[:, :, angle] += 2 * math.pi

    said = in_other_words(model, scene.evolve(sprite_params=around), [0, 1, 2])

    assert distillation_loss(model, said, scene, everywhere() & False).item() < 1e-20


def test_a_shift_counts_in_half_sprites_and_a_colour_where_the_sprite_is():
    model = Decomposer(
        sprites=Pixels(count=1, size=(4, 4), mask="opaque", appearance=0.5),
        layer_transforms=[Color(), Position()],
        compositor=Ordered(layers=1),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=4, features=8)),
    )
    model.prepare(torch.rand(2, 3, 8, 8))
    at_rest = model.predict(torch.rand(1, 3, 8, 8))

    def told(*params):
        scene = Scene(
            sprite=torch.tensor([[0]]),
            sprite_params=torch.zeros(1, 1, 0),
            layer_params=torch.tensor([[params]]),
            occlusion=torch.zeros(1, 1, 1),
        )
        no = torch.zeros(1, 1, 1, dtype=torch.bool)
        return distillation_loss(model, at_rest, scene, no).item()

    assert told(*[0.0] * 6, 0.0, 0.3, -0.4) == pytest.approx(0.25)
    # One gain of three from 1 to 0.6: from 0.5 to 0.3.
    assert told(-0.4, *[0.0] * 8) == pytest.approx(0.04)


def test_nothing_is_asked_of_layers_that_are_empty():
    model, images = make(Occlusion(layers=LAYERS))
    scene = some_scene(model)
    scene.sprite[:, 1] = EMPTY
    elsewhere = scene.layer_params.clone()
    elsewhere[:, 1] = 3.0
    prediction = model.predict(images)

    told = distillation_loss(model, prediction, scene, everywhere())

    again = scene.evolve(layer_params=elsewhere)
    assert told == distillation_loss(model, prediction, again, everywhere())


def test_scenes_without_anything_teach_nothing():
    model, images = make(Occlusion(layers=LAYERS))
    scene = some_scene(model)
    nothing = scene.evolve(sprite=torch.full_like(scene.sprite, EMPTY))

    told = distillation_loss(model, model.predict(images), nothing, everywhere())
    told.backward()

    assert told.item() == 0.0
    assert all(p.grad is None or not p.grad.any() for p in model.predictor.parameters())


# Pairing.


def paired(costs, overlap=(), depth=(0, 1, 2)):
    touching = torch.zeros(3, 3, dtype=torch.bool)
    for i, j in overlap:
        touching[i, j] = touching[j, i] = True
    depth = None if depth is None else torch.tensor(depth)
    return match_layers(torch.tensor([costs]), touching[None], depth)[0].tolist()


# The first layer of the scene is nearest to the last prediction, and so on.
COSTS = [[9.0, 5.0, 1.0], [1.0, 9.0, 9.0], [9.0, 1.0, 9.0]]


def test_layers_are_paired_at_least_cost():
    assert paired(COSTS) == [2, 0, 1]


def test_the_least_cost_is_that_of_all_together():
    # The first two both are nearest to the first prediction.
    assert paired([[0.0, 1.0, 9.0], [0.0, 5.0, 9.0], [9.0, 9.0, 0.0]]) == [1, 0, 2]


@pytest.mark.parametrize(
    ("overlap", "chosen"),
    [
        ([(0, 1)], [0, 2, 1]),
        ([(1, 2)], [2, 0, 1]),
        ([(0, 2)], [1, 0, 2]),
        ([(0, 1), (1, 2)], [0, 1, 2]),
    ],
)
def test_layers_that_overlap_keep_their_order_where_it_is_fixed(overlap, chosen):
    assert paired(COSTS, overlap) == chosen


def test_the_order_is_that_of_the_compositor():
    assert paired(COSTS, [(0, 1)], depth=(1, 2, 0)) == [2, 0, 1]
    assert paired(COSTS, [(1, 2)], depth=(1, 2, 0)) == [2, 1, 0]


def test_layers_that_overlap_are_free_where_the_order_is_predicted():
    assert paired(COSTS, [(0, 1), (1, 2), (0, 2)], depth=None) == [2, 0, 1]


# A lesson.


@pytest.fixture
def lesson():
    """A plain model, images, and a teacher who knows two layers, one of them behind."""
    torch.manual_seed(0)
    model = plain_decomposer(PlainSelector(), with_background=True)
    images = torch.rand(4, 3, 8, 10)
    model.prepare(images)
    scene = Scene(
        sprite=torch.tensor([[0, 1], [2, EMPTY], [EMPTY, 1], [1, 1]]),
        sprite_params=torch.full((4, 2, 2), 0.25),
        layer_params=torch.full((4, 2, 1), 0.5),
        occlusion=torch.tensor([[[0.0, 0.0], [1.0, 0.0]]]).repeat(4, 1, 1),
        background=torch.zeros(4, dtype=torch.int64),
        background_params=torch.full((4, 1), 0.5),
    )
    return model, images, Knowing(scene, empty_cost=0.5)


def test_a_lesson_changes_the_predictor_and_nothing_else(lesson):
    model, images, teacher = lesson

    loss, _ = distillation_step(model, images, teacher)
    loss.total.backward()

    touched = {name for name, p in model.named_parameters() if p.grad is not None}
    assert touched == {"predictor.sprite", "predictor.layer", "predictor.background"}
    assert all(model.get_parameter(name).grad.any() for name in touched)


def test_a_lesson_repeated_is_learned(lesson):
    model, images, teacher = lesson
    optimizer = torch.optim.Adam(model.predictor.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss, _ = distillation_step(model, images, teacher)
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
        losses.append(loss.teaching.item())

    assert losses[-1] < 0.02 * losses[0]


def test_a_lesson_tells_how_well_the_teacher_explains(lesson):
    model, images, teacher = lesson

    loss, scene = distillation_step(model, images, teacher)

    assert scene is teacher.scene
    error = (model.render(scene).image - images).square().mean()
    assert loss.reconstruction.item() == pytest.approx(error.item())
    assert loss.sprites.item() == pytest.approx(0.5 * 6 / 4)
    numbers = loss.detach().numbers()
    assert numbers.pop("loss") == pytest.approx(sum(numbers.values()))
    assert set(numbers) == {"reconstruction", "sprites", "teaching"}


@pytest.mark.parametrize(
    ("price", "frozen", "may_be_empty"),
    [(0.5, False, True), (None, False, False), (0.5, True, False)],
)
def test_a_teacher_sees_no_noise_and_leaves_layers_empty_at_its_own_price(
    lesson, price, frozen, may_be_empty
):
    model, images, teacher = lesson
    teacher.empty_cost, model.sprites_frozen = price, frozen

    distillation_step(model, images, teacher)

    assert teacher.asked == (None, may_be_empty)


def test_layers_overlap_where_both_are_seen():
    """Two opaque squares that do, and two that do not, in an order to be learned."""
    model = Decomposer(
        sprites=Pixels(count=1, size=(4, 4), mask="opaque"),
        layer_transforms=[Position()],
        compositor=Occlusion(layers=2),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=4, features=8)),
    )
    images = torch.rand(2, 3, 8, 8)
    model.prepare(images)

    def told(shift, hides=1.0):
        scene = Scene(
            sprite=torch.zeros(2, 2, dtype=torch.int64),
            sprite_params=torch.zeros(2, 2, 0),
            layer_params=torch.tensor([[0.0, -shift, 0.0], [0.0, shift, 0.0]]).repeat(2, 1, 1),
            occlusion=torch.tensor([[0.0, 1 - hides], [hides, 0.0]]).repeat(2, 1, 1),
        )
        return distillation_step(model, images, Knowing(scene))[0].teaching.item()

    # Nothing is known of the order yet, so that it costs log 2, whatever it is.
    assert told(1.5) == pytest.approx(1.5**2)
    assert told(0.5) == pytest.approx(0.5**2 + math.log(2))
    with torch.no_grad():
        model.predictor.occlusion_heads.biases[-1] += 3.0
    assert told(0.5, hides=1.0) < 0.25 + 0.1
    assert told(0.5, hides=0.0) > 0.25 + 2.0

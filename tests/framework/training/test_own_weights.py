"""Everything in a model that has parameters learns, at a rate that is stated, or is refused."""

import pytest
import torch
from torch import nn

from celstack.errors import CelstackError
from celstack.interfaces.encoder import Encoder
from celstack.interfaces.transform import Transform, Warp
from celstack.recipe.assembly import Assembly, Stage, Training, Transforms
from celstack.recipe.consistency import check_consistency
from celstack.runs.checkpoint import pack_checkpoint, restore_checkpoint
from celstack.testing.compositors import check_compositor
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainEncoder,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)
from celstack.testing.transforms import check_transform
from celstack.training.initialize import init_model
from celstack.training.loop import run
from celstack.training.optimizer import build_optimizer, set_learning_rates


class Palette(Transform):
    """Adds a learned color, as much of it as the parameter says."""

    num_params = 1
    learning_rate = 0.01

    def prepare(self, channels):
        self.color = nn.Parameter(torch.ones(channels))

    def forward(self, images, params):
        colors = images[:, :-1] + (params * self.color)[:, :, None, None]
        return torch.cat([colors, images[:, -1:]], dim=1)


class Tilt(PlainWarp):
    """Shifts along learned axes, by ``pull`` alone."""

    def prepare(self, channels):
        self.axes = nn.Parameter(torch.eye(2))

    def pull(self, points, params):
        return points - (params @ self.axes)[:, None]

    matrix = Warp.matrix
    params_from_matrix = Warp.params_from_matrix


class TiltByMatrix(Tilt):
    """The same as a matrix."""

    def matrix(self, params):
        return PlainWarp.matrix(self, params @ self.axes)


class Shrunk(PlainTransform):
    """Rests in a pose that is learned, so it is called while it rests, too."""

    rest_is_identity = False

    def prepare(self, channels):
        self.rest = nn.Parameter(torch.full((channels,), 0.1))

    def forward(self, images, params):
        return super().forward(images, params + self.rest.mean())


class Sharp(PlainCompositor, nn.Module):
    """Learns how much later layers hide earlier ones."""

    learning_rate = 0.02

    def __init__(self, layers: int = 2) -> None:
        nn.Module.__init__(self)
        self.layers = layers

    def prepare(self, image_shape):
        self.hiding = nn.Parameter(torch.tensor(2.0))

    def occlusion(self, logits, training):
        order = super().occlusion(logits, training)
        if not training:
            return order
        hides = self.hiding.sigmoid()
        return hides * order + (1 - hides) * order.mT


class Gate(PlainSelector, nn.Module):
    """Has a parameter, though choosing has no gradient."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.empty_cost = None
        self.threshold = nn.Parameter(torch.zeros(1))


class Listed(PlainTransform):
    """Keeps a network in a list, where torch does not find it."""

    def prepare(self, channels):
        self.networks = [nn.Linear(1, 1)]


class Loose(PlainCompositor):
    """Has a parameter, but is not a module."""

    def prepare(self, image_shape):
        self.hiding = nn.Parameter(torch.ones(()))


class Fast(PlainTransform):
    """States a rate that is none."""

    learning_rate = -1.0

    def prepare(self, channels):
        self.weight = nn.Parameter(torch.ones(1))


class Unrated(Fast):
    """States no rate, and has parameters."""

    learning_rate = None


def make(*stages, **changes):
    parts = {
        "dataset": PlainDataset(),
        "sprites": PlainPrototype(),
        "compositor": PlainCompositor(),
        "selector": PlainSelector(empty_cost=None),
        "predictor": PlainPredictor(),
        "transforms": Transforms(layer=[PlainTransform(), Palette()]),
        "stages": list(stages) or [Stage(steps=3)],
        "training": Training(batch_size=4, prototype_rate=0.02, head_rate=0.02),
    }
    return Assembly(**{**parts, **changes})


def own_weights(assembly):
    """Train, and return weights of transforms and compositor that have moved, by name."""
    with torch.random.fork_rng(devices=[]):
        before = dict(init_model(assembly).named_parameters())
    after = dict(run(assembly).decomposer.named_parameters())
    others = ("sprites.", "backgrounds.", "predictor.")
    names = [name for name in before if not name.startswith(others)]
    return {name: not torch.equal(before[name], after[name]) for name in names}


@pytest.mark.parametrize("transform", [Palette, Tilt, TiltByMatrix, Shrunk])
@pytest.mark.parametrize("kind", ["sprite", "layer", "background"])
def test_weights_of_a_transform_learn_in_every_chain(transform, kind):
    background = {"backgrounds": PlainPrototype(1)} if kind == "background" else {}
    chains = Transforms(**{kind: [transform()]})

    (moved,) = own_weights(make(transforms=chains, **background)).values()

    assert moved


@pytest.mark.parametrize("transform", [Palette, Tilt, TiltByMatrix, Shrunk])
def test_such_a_transform_keeps_the_laws(transform):
    check_transform(transform())


def test_weights_of_a_compositor_learn():
    moved = own_weights(make(compositor=Sharp(), transforms=Transforms(sprite=[PlainWarp()])))

    assert moved == {"compositor.hiding": True}


def test_such_a_compositor_keeps_the_laws():
    check_compositor(Sharp(layers=2))


def test_each_has_a_group_of_its_own_with_the_rate_that_it_states():
    assembly = make(Stage(steps=1, network_factor=0.5), compositor=Sharp())

    optimizer = build_optimizer(init_model(assembly), assembly.training)
    rates = set_learning_rates(optimizer, assembly.stages[0], factor=0.1)

    expected = {
        "prototypes": 2e-3,
        "heads": 1e-3,
        "transforms.layer[1]": 5e-4,
        "compositor": 1e-3,
    }
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize("transform", [Palette, Shrunk])
def test_weights_of_a_transform_that_rests_do_not_move(transform):
    chains = Transforms(sprite=[PlainWarp()], layer=[transform()])
    resting = Stage(steps=3, transforms=["plain_warp"])
    again = Stage(steps=3)

    assert own_weights(make(resting, transforms=chains)) == {
        f"layer_chain.transforms.0.{name}": False
        for name in ("color" if transform is Palette else "rest",)
    }
    assert all(own_weights(make(resting, again, transforms=chains)).values())


def test_a_teacher_teaches_the_predictor_alone():
    class Alone(PlainSelector):
        """Explains without the predictor."""

        def check(self, decomposer):
            pass

        def explain(self, images, decomposer, noise, allow_empty):
            predictor = PlainPredictor()
            predictor.prepare(decomposer.outline())
            own, decomposer.predictor = decomposer.predictor, predictor
            try:
                return super().explain(images, decomposer, noise, allow_empty)
            finally:
                decomposer.predictor = own

    assembly = make(
        Stage(steps=3, teacher=Alone(empty_cost=None)), transforms=Transforms(layer=[Palette()])
    )

    assert own_weights(assembly) == {"layer_chain.transforms.0.color": False}


@pytest.mark.parametrize(
    ("changes", "place", "text"),
    [
        ({"selector": Gate()}, "selector", "threshold, but selectors do not learn"),
        ({"selector": Gate()}, "selector", "or requires_grad_(False) if they are not to learn"),
        (
            {"stages": [Stage(steps=1, selector=Gate())]},
            "stages[0].selector",
            "threshold, but selectors do not learn",
        ),
        (
            {"transforms": Transforms(layer=[Listed()])},
            "transforms.layer[0]",
            "networks, where they would never learn",
        ),
        ({"compositor": Loose()}, "compositor", "hiding, where they would never learn"),
        ({"transforms": Transforms(sprite=[Fast()])}, "transforms.sprite[0]", "-1.0"),
        (
            {"transforms": Transforms(sprite=[Unrated()])},
            "transforms.sprite[0]",
            "learning_rate is None; it must be more than 0",
        ),
    ],
)
def test_what_would_never_learn_is_refused_before_anything_is_trained(changes, place, text):
    (problem,) = check_consistency(make(**changes))

    assert problem.place == place
    assert text in problem.text


def test_a_predictor_that_hides_a_network_is_refused_by_the_optimizer():
    class Hiding(PlainPredictor):
        def prepare(self, outline):
            super().prepare(outline)
            self.networks = {"first": [nn.Linear(2, 2)]}

    model = init_model(make(predictor=Hiding()))

    with pytest.raises(CelstackError, match="predictor: has parameters in networks"):
        build_optimizer(model, Training())


def test_constants_and_shared_transforms_are_no_reason_to_refuse():
    class Fixed(PlainTransform):
        def prepare(self, channels):
            self.constant = nn.Parameter(torch.ones(channels), requires_grad=False)

    class Remembering(PlainSelector):
        def check(self, decomposer):
            self.model = decomposer

    shared = Palette()
    chains = Transforms(layer=[shared, shared], sprite=[Fixed()])

    assert own_weights(make(transforms=chains, selector=Remembering(empty_cost=None))) == {
        "sprite_chain.transforms.0.constant": False,
        "layer_chain.transforms.0.color": True,
    }


def test_a_network_that_is_an_argument_learns():
    class Given(PlainTransform):
        def __init__(self, network: nn.Module) -> None:
            super().__init__()
            self.network = network

        def forward(self, images, params):
            return super().forward(images, self.network(params))

    chains = Transforms(layer=[Given(nn.Linear(1, 1, bias=False))])

    assert own_weights(make(transforms=chains)) == {
        "layer_chain.transforms.0.network.weight": True
    }


def test_an_encoder_that_has_weights_when_it_is_given_is_not_refused():
    class Pretrained(PlainEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.prepare((3, 8, 10))

    class WithEncoder(PlainPredictor):
        def __init__(self, encoder: Encoder) -> None:
            super().__init__()
            self.encoder = encoder

    assert check_consistency(make(predictor=WithEncoder(Pretrained()))) == []


def test_a_checkpoint_from_before_they_learned_is_resumed(tmp_path):
    """Until 0.1.0 the optimizer had no group for the weights of transforms."""
    assembly = make()
    model = init_model(assembly)
    optimizer = build_optimizer(model, assembly.training)
    for parameter in model.parameters():
        parameter.grad = torch.rand_like(parameter)
    optimizer.step()
    usage = torch.zeros(3, dtype=torch.int64)
    state = pack_checkpoint(model, optimizer, usage, (1, 1), "")
    *old, added = state["optimizer"]["param_groups"]
    assert added["name"] == "transforms.layer[1]"
    state["optimizer"]["param_groups"] = old
    for number in added["params"]:
        del state["optimizer"]["state"][number]

    other = init_model(assembly)
    fresh = build_optimizer(other, assembly.training)
    restore_checkpoint(state, other, fresh, usage, tmp_path)

    known = {name for name, p in other.named_parameters() if p in fresh.state}
    color = "layer_chain.transforms.1.color"
    assert known == {name for name, _ in other.named_parameters()} - {color}
    assert fresh.param_groups[-1]["name"] == "transforms.layer[1]"

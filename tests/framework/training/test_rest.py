"""What a stage does not use is not called, and training leaves it untouched."""

import pytest
import torch

from celstack.hookspecs import hookimpl
from celstack.interfaces.observer import Observer
from celstack.recipe.assembly import Assembly, Evaluation, Stage, Training, Transforms
from celstack.runs.checkpoint import read_checkpoint
from celstack.testing.parts import PlainDataset
from celstack.training.loop import run
from celstack.training.optimizer import build_optimizer
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity

RESTING = ("predictor.sprite_heads", "predictor.background_heads")
PLACING = ["position"]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Snapshots(Observer):
    """Keeps the weights, and which have gradients, after some steps."""

    def __init__(self, *steps):
        self.wanted, self.weights, self.gradients = steps, {}, {}

    @hookimpl
    def celstack_run_started(self, decomposer):
        self.decomposer = decomposer
        self.weights[0] = self.now()

    @hookimpl
    def celstack_step_finished(self, step):
        if step in self.wanted:
            self.weights[step] = self.now()
            named = self.decomposer.named_parameters()
            self.gradients[step] = {name for name, p in named if p.grad is not None}

    def now(self):
        return {n: p.detach().clone() for n, p in self.decomposer.named_parameters()}

    def moved(self, before, after):
        pairs = self.weights[before], self.weights[after]
        return {n for n in pairs[0] if not torch.equal(pairs[0][n], pairs[1][n])}


def make(observer, *stages, **changes):
    parts = {
        "dataset": PlainDataset(),
        "sprites": Pixels(count=2, size=(4, 4), mask_sigma=2.0, jitter=0.05),
        "backgrounds": Pixels(count=1, start="mean"),
        "transforms": Transforms(
            sprite=[Similarity()], layer=[Position()], background=[Color()]
        ),
        "compositor": Occlusion(layers=2),
        "selector": Greedy(),
        "predictor": Network(encoder=Strided(width=2, features=4), hidden=4),
        "training": Training(batch_size=4, weight_decay=1e-6, reassign_every=7),
        "evaluation": Evaluation(images=4),
        "stages": list(stages),
        "observers": [observer],
    }
    return Assembly(**{**parts, **changes})


def resting(names):
    return {name for name in names if name.startswith(RESTING)}


def test_resting_heads_do_not_change_in_thousands_of_steps():
    kept = Snapshots(2500)

    stage = Stage(steps=2500, transforms=PLACING, freeze_sprites=True)
    run(make(kept, stage))

    moved = kept.moved(0, 2500)
    assert resting(kept.weights[0])
    assert not resting(moved)
    assert not resting(kept.gradients[2500])
    others = {n for n in kept.weights[0] if n.startswith("predictor.layer_heads")}
    assert others <= moved
    assert not any(n.startswith("sprites") for n in moved)


def test_heads_that_rest_again_keep_weights_and_moments(tmp_path):
    kept = Snapshots(5, 30)
    stages = Stage(steps=5), Stage(steps=25, transforms=PLACING, reassign=False)

    trained = run(make(kept, *stages), tmp_path)

    assert resting(kept.moved(0, 5))
    assert not resting(kept.moved(5, 30))
    steps = moment_steps(trained)
    assert {steps[name] for name in resting(steps)} == {5}
    assert {steps[name] for name in steps if name.startswith("predictor.encoder")} == {30}


def moment_steps(trained):
    """Say how often the optimizer has moved each parameter, by its name."""
    state = read_checkpoint(trained.folder / "checkpoint.pt")["optimizer"]
    optimizer = build_optimizer(trained.decomposer, Training())
    names = {id(p): name for name, p in trained.decomposer.named_parameters()}
    order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
    return {order[number]: int(known["step"]) for number, known in state["state"].items()}


def test_a_transform_that_joins_late_learns_from_its_first_step_on():
    kept = Snapshots(10, 12)

    run(make(kept, Stage(steps=10, transforms=PLACING), Stage(steps=2)))

    last = [n for n in resting(kept.weights[0]) if n.endswith("2")]
    assert set(last) <= kept.moved(10, 12)


def test_a_teacher_leaves_resting_heads_and_prototypes_alone():
    kept = Snapshots(20)
    teacher = Matching(refine=0)
    stage = Stage(steps=20, transforms=PLACING, teacher=teacher)

    chains = Transforms(sprite=[Similarity()], layer=[Position()])
    run(make(kept, stage, backgrounds=None, transforms=chains))

    moved = kept.moved(0, 20)
    assert moved
    assert all(name.startswith("predictor") for name in moved)
    assert not resting(moved)


def test_a_run_that_is_resumed_leaves_them_alone(tmp_path):
    """It was stopped after sprites, and their resting heads, had been reassigned."""

    class Stop(Observer):
        reassigned = False

        @hookimpl
        def celstack_sprites_reassigned(self):
            self.reassigned = True

        @hookimpl
        def celstack_step_finished(self, step):
            if step == 9:
                assert self.reassigned
                raise KeyboardInterrupt

    whole, again = Snapshots(12), Snapshots(12)
    stage = Stage(steps=12, transforms=PLACING)
    often = Training(batch_size=4, reassign_every=7, reassign_below=1.0)
    run(make(whole, stage, training=often))
    assembly = make(Stop(), stage, training=often)
    with pytest.raises(KeyboardInterrupt):
        run(assembly, tmp_path)
    (folder,) = tmp_path.glob("*/*")
    assembly.observers[:] = [again]

    run(assembly, folder, resume=True)

    for name, weight in whole.weights[12].items():
        assert torch.equal(weight, again.weights[12][name]), name
    assert not resting(again.gradients[12])

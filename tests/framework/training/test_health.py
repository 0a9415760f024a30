"""Planted faults: each is found by the health check, and a healthy run is not blamed."""

import inspect
import json
import re

import pytest
import torch

from celstack.cli import celstack
from celstack.hookspecs import hookimpl
from celstack.interfaces.observer import Observer
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Evaluation, Stage, Training, Transforms
from celstack.report.training_log import read_training_log
from celstack.runs.directory import RunDirectory
from celstack.runs.findings import MEANINGS, Finding
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)
from celstack.training import health
from celstack.training.loop import run
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import ChainHeads, Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


class Heard(Observer):
    def __init__(self):
        self.findings = []

    @hookimpl
    def celstack_health_checked(self, step, findings):
        self.findings += [(step, finding) for finding in findings]

    def kinds(self):
        return {finding.kind for _, finding in self.findings}


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Look every ten steps, and expect transforms to work after five."""
    monkeypatch.setattr("celstack.training.health.CHECK_EVERY_STEPS", 10)
    monkeypatch.setattr("celstack.training.health.MIN_STAGE_STEPS", 5)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network_run(heard, *stages, directory=None, training=None, resume=False, **changes):
    parts = {
        "dataset": PlainDataset(),
        "sprites": Pixels(count=2, size=(4, 4), mask_sigma=2.0, jitter=0.05),
        "transforms": Transforms(layer=[Color(), Position()]),
        "compositor": Ordered(layers=1),
        "selector": Greedy(),
        "predictor": Network(encoder=Strided(width=2, features=6), hidden=6),
        "training": training
        or Training(batch_size=8, prototype_rate=0.02, reassign_every=10, reassign_below=0.5),
        "evaluation": Evaluation(images=4),
        "stages": list(stages) or [Stage(steps=40)],
        "observers": [heard],
    }
    return run(Assembly(**{**parts, **changes}), directory, resume=resume)


def test_a_healthy_run_is_not_blamed(heard):
    stages = Stage(steps=20, transforms=["position"], freeze_sprites=True), Stage(steps=40)

    network_run(heard, *stages)

    assert heard.findings == []


def test_decay_on_inactive_heads(heard, monkeypatch):
    """The fault of 0.1.0: what rests is multiplied by zero instead of left out."""

    def multiplied(self, features):
        parts = [
            heads(features) * float(active)
            for heads, active in zip(self.heads, self.active, strict=True)
        ]
        return torch.cat([features.new_zeros(len(features), *self.groups, 0), *parts], -1)

    monkeypatch.setattr(ChainHeads, "forward", multiplied)

    network_run(heard, Stage(steps=20, transforms=["position"]))

    first = {f.part for step, f in heard.findings if step == 10 and f.kind == "zero-gradient"}
    assert "predictor.layer_heads.heads.0.weights.1" in first
    assert not any("heads.1" in part for part in first)


def test_heads_that_have_vanished(heard, monkeypatch):
    forward = ChainHeads.forward

    def decaying(self, features):
        with torch.no_grad():
            for heads in self.heads:
                heads.weights[1].mul_(0.5)
                heads.weights[0].mul_(0.5)
                heads.biases[0].mul_(0.5)
        return forward(self, features)

    monkeypatch.setattr(ChainHeads, "forward", decaying)

    network_run(heard)

    assert {"vanished-weights", "constant-transform"} <= heard.kinds()


def test_a_head_that_is_never_selected(heard, monkeypatch):
    """Sprite 1 is never a candidate: its heads get gradients of zero and decay."""
    choose = Greedy.choose

    def only_first(self, *arguments):
        sprite, background = choose(self, *arguments)
        return sprite.clamp(max=0), background

    monkeypatch.setattr(Greedy, "choose", only_first)
    training = Training(batch_size=8, decay="coupled", head_rate=0.01)

    network_run(
        heard,
        Stage(steps=120),
        training=training,
        transforms=Transforms(sprite=[PlainWarp()], layer=[Color(), Position()]),
    )

    found = {(f.kind, f.part) for _, f in heard.findings}
    assert ("unused-sprite", "sprite 1") in found
    assert ("vanished-weights", "predictor.sprite_heads.heads.0.weights.1 of sprite 1") in found
    assert not any(part.endswith("of sprite 0") for _, part in found)


def test_a_frozen_sprite_that_moves(heard, monkeypatch):
    monkeypatch.setattr(Decomposer, "sprite_images", lambda self: self.sprites.images())

    network_run(heard, Stage(steps=20, freeze_sprites=True))

    assert "moved-at-rest" in heard.kinds()
    assert all(f.part.startswith("sprites.") for _, f in heard.findings)


def test_a_learning_rate_of_zero(heard, monkeypatch):
    def stopped(optimizer, *_):
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        return {}

    monkeypatch.setattr("celstack.training.steering.set_learning_rates", stopped)

    network_run(heard, Stage(steps=20))

    assert "not-learning" in heard.kinds()


def test_a_rate_that_is_zero_on_purpose_is_none_of_its_business(heard):
    network_run(heard, Stage(steps=20, network_factor=0.0, prototype_factor=0.0))

    assert "not-learning" not in heard.kinds()


def test_weights_that_explode(heard):
    training = Training(batch_size=8, head_rate=300.0, weight_decay=0.0)

    network_run(heard, Stage(steps=20), training=training)

    assert "exploding-weights" in heard.kinds()


def test_a_transform_whose_parameters_are_the_same_for_all_images(heard):
    class Blind(PlainPredictor):
        """Says the same of every image."""

        def forward(self, images):
            return super().forward(torch.ones_like(images))

    run(
        Assembly(
            dataset=PlainDataset(),
            sprites=PlainPrototype(),
            compositor=PlainCompositor(),
            selector=PlainSelector(empty_cost=None),
            predictor=Blind(),
            transforms=Transforms(layer=[PlainTransform()]),
            stages=[Stage(steps=10)],
            training=Training(batch_size=8),
            evaluation=Evaluation(images=4),
            observers=[heard],
        )
    )

    parts = {f.part for _, f in heard.findings if f.kind == "constant-transform"}
    assert parts == {"transforms.layer.plain_transform"}


def test_a_sprite_that_shows_nothing(heard):
    sprites = Pixels(count=2, size=(4, 4), mask_sigma=0.01)

    network_run(heard, Stage(steps=10, prototype_factor=0.0), sprites=sprites)

    assert "transparent-sprite" in heard.kinds()


def test_findings_are_in_the_log_and_read_from_it(heard, tmp_path):
    directory = RunDirectory.create(tmp_path, "mine", 0)
    sprites = Pixels(count=2, size=(4, 4), mask_sigma=0.01)

    stage = Stage(steps=40, prototype_factor=0.0, reassign=False)
    network_run(heard, stage, directory=directory, sprites=sprites)
    directory.close()

    log = directory.folder / "log.jsonl"
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if "health" in line]
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    history = read_training_log(log)
    found = next(line for line in history.health if line.part == "sprite 0")
    assert (found.kind, found.first, found.last) == ("transparent-sprite", 10, 40)


@pytest.mark.parametrize(
    "line", ['"x"', "[1]", '[{"kind": 1, "part": "a", "detail": "b"}]', '[{"kind": "a"}]']
)
def test_lines_that_make_no_sense_are_passed_over(tmp_path, line):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "health": ' + line + "}\n")

    assert read_training_log(tmp_path / "log.jsonl").health == []


def test_every_kind_is_explained_by_a_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["celstack", "show", "health"])

    with pytest.raises(SystemExit) as ended:
        celstack()

    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f"{kind}\n" in printed for kind in MEANINGS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["health", "unused"], "unknown finding 'unused'; did you mean 'unused-sprite'?"),
        (["transform"], "no name given; 'celstack plugins --kind transform' lists them"),
    ],
)
def test_what_is_not_known_is_told_in_a_line(monkeypatch, capsys, words, told):
    monkeypatch.setattr("sys.argv", ["celstack", "show", *words])

    with pytest.raises(SystemExit) as ended:
        celstack()

    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"celstack: {told}")


def test_what_can_be_found_is_what_is_explained():
    source = inspect.getsource(health)

    assert set(re.findall(r'Finding\("([^"]+)"', source)) == set(MEANINGS)
    assert source.count("Finding(") == source.count('Finding("')


def test_a_finding_reads_as_a_sentence():
    text = str(Finding("unused-sprite", "sprite 3", "selected 0 of 400 times"))

    assert text == "sprite 3: unused sprite (selected 0 of 400 times)"


def test_a_resumed_run_finds_what_a_whole_one_does(heard, tmp_path, monkeypatch):
    """A planted fault: frozen sprites move. The run is stopped between two checks."""
    monkeypatch.setattr(Decomposer, "sprite_images", lambda self: self.sprites.images())

    class Stop(Observer):
        @hookimpl
        def celstack_step_finished(self, step):
            if step == 15:
                raise KeyboardInterrupt

    stage = Stage(steps=25, freeze_sprites=True)
    whole = network_run(heard, stage, directory=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        network_run(Stop(), stage, directory=tmp_path / "stopped")
    (folder,) = (tmp_path / "stopped").glob("*/*")
    network_run(heard, stage, directory=folder, resume=True)

    lines = [checks(folder), checks(whole.folder)]
    assert [step for step, _ in lines[0]] == [10, 20, 25]
    assert all(findings for _, findings in lines[0])
    assert lines[0] == lines[1]


def checks(folder):
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [(line["step"], line["health"]) for line in lines if "health" in line]


def test_a_layer_that_stays_empty(heard):
    network_run(
        heard,
        Stage(steps=10),
        compositor=Ordered(layers=2),
        selector=Greedy(empty_cost=10.0),
    )

    assert {f.part for _, f in heard.findings if f.kind == "empty-layer"} == {
        "layer 0",
        "layer 1",
    }


def test_sprites_that_will_be_reassigned_are_not_called_unused(heard, monkeypatch):
    monkeypatch.setattr("celstack.training.health.MIN_USES_PER_SPRITE", 1)
    choose = Greedy.choose

    def only_first(self, *arguments):
        sprite, background = choose(self, *arguments)
        return sprite.clamp(max=0), background

    monkeypatch.setattr(Greedy, "choose", only_first)

    network_run(heard, Stage(steps=20))
    assert "unused-sprite" not in heard.kinds()

    network_run(heard, Stage(steps=20, reassign=False))
    assert "unused-sprite" in heard.kinds()


def test_the_end_of_a_cosine_is_not_called_a_standstill(heard):
    network_run(heard, Stage(steps=20, schedule="cosine"))

    assert "not-learning" not in heard.kinds()


def test_a_rate_that_an_observer_sets_to_zero_is_not_called_a_standstill(heard):
    class Still(Observer):
        @hookimpl
        def celstack_step_started(self, rates):
            return {"prototypes": 0.0}

    network_run(heard, Stage(steps=10), observers=[heard, Still()])

    assert "not-learning" not in heard.kinds()

"""Runs made by 0.1.0, whose heads served whole chains, still open, resume and report."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from celstack.cli import celstack, run_recipe
from celstack.errors import CelstackError
from celstack.recipe.assembly import Training
from celstack.runs.checkpoint import read_checkpoint
from celstack.runs.checkpoint_upgrade import upgrade_moments
from celstack.runs.open import open_run
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack.testing.parts import PlainPredictor
from celstack.training.evaluate import score
from celstack.training.optimizer import build_optimizer

RUNS = Path(__file__).parents[2] / "runs"


@pytest.fixture
def finished(tmp_path):
    return Path(shutil.copytree(RUNS / "made_by_0_1_0", tmp_path / "finished"))


@pytest.fixture
def stopped(tmp_path):
    return Path(shutil.copytree(RUNS / "stopped_by_0_1_0", tmp_path / "stopped"))


def call(monkeypatch, command, *arguments):
    monkeypatch.setattr("sys.argv", ["celstack", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 0


def test_it_scores_as_it_did(finished):
    opened = open_run(finished)
    assembly = opened.assembly

    scores = score(opened.decomposer, assembly.dataset, assembly.metrics, assembly.evaluation)

    assert scores == pytest.approx(json.loads((finished / "metrics.json").read_text()))


def test_each_transform_has_the_hidden_layers_that_served_the_chain(finished):
    weights = open_run(finished).decomposer.state_dict()

    old = read_checkpoint(finished / "checkpoint.pt")["model"]
    for transform in (0, 1):
        name = f"predictor.layer_heads.heads.{transform}.weights.1"
        assert torch.equal(weights[name], old["predictor.layer_heads.weights.1"])
    last = [weights[f"predictor.layer_heads.heads.{t}.weights.2"] for t in (0, 1)]
    assert torch.equal(torch.cat(last, dim=-2), old["predictor.layer_heads.weights.2"])


def test_a_stopped_run_goes_on_with_its_moments(stopped, monkeypatch, capsys):
    call(monkeypatch, run_recipe, "--resume", stopped, "--quiet")

    state = read_checkpoint(stopped / "checkpoint.pt")
    assert state["step"] == 16
    steps = {int(moment["step"]) for moment in state["optimizer"]["state"].values()}
    # The sprites were frozen for the first eight steps; all else has learned all along.
    assert steps == {8, 16}
    assert "ari" in json.loads((stopped / "metrics.json").read_text())


def test_its_page_can_be_written_again(finished, monkeypatch, capsys):
    call(monkeypatch, celstack, "report", finished)

    page = (finished / "report.html").read_text()
    assert "<h2>Sprites</h2>" in page
    # Nothing is claimed of a run that was never checked.
    assert "<h3>Health</h3>" not in page


def test_one_that_goes_on_says_that_it_is_not_to_the_last_bit(stopped, monkeypatch, capsys):
    call(monkeypatch, run_recipe, "--resume", stopped, "--quiet")

    said = "checkpoint.pt: converted from an earlier version of Celstack; results may differ"
    assert said in capsys.readouterr().err


LAST = "predictor.layer_heads.weights.2"


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        (7, torch.zeros(2)),
        ("predictor.layer_heads.weights.x", torch.zeros(2)),
        (LAST, torch.zeros(())),
        (LAST, torch.zeros(9)),
        (LAST, torch.zeros(1, 9, 9)),
        ("predictor.layer_heads.weights.1", torch.zeros(1).expand(10**13)),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_a_line(finished, name, weight):
    state = torch.load(finished / "checkpoint.pt", weights_only=True)
    state["model"][name] = weight
    torch.save(state, finished / "checkpoint.pt")

    with pytest.raises(CelstackError) as refused:
        open_run(finished)

    (line,) = str(refused.value).splitlines()
    assert "checkpoint.pt does not match the recipe" in line
    assert len(line) < 500


def test_damaged_moments_are_refused_in_a_line(stopped, monkeypatch, capsys):
    state = torch.load(stopped / "checkpoint.pt", weights_only=True)
    for moment in state["optimizer"]["state"].values():
        moment["exp_avg"] = torch.zeros(1).expand(10**13)
    torch.save(state, stopped / "checkpoint.pt")
    monkeypatch.setattr("sys.argv", ["run-recipe", "--resume", str(stopped), "--quiet"])

    with pytest.raises(SystemExit) as ended:
        run_recipe()

    assert ended.value.code == 2
    assert "checkpoint.pt does not match the recipe" in capsys.readouterr().err


def test_weights_that_keep_their_names_take_their_moments_along():
    class Flipped(PlainPredictor):
        def upgrade_weights(self, weights):
            return {name: weight.flip(-1) for name, weight in weights.items()}

    decomposer = plain_decomposer(PlainSelector())
    decomposer.predictor = Flipped()
    decomposer.prepare(torch.rand(4, 3, 8, 10))
    optimizer = build_optimizer(decomposer, Training())
    for parameter in decomposer.parameters():
        parameter.grad = torch.rand_like(parameter)
    optimizer.step()
    state = optimizer.state_dict()

    upgraded = upgrade_moments(decomposer, optimizer, decomposer.state_dict(), state)

    numbers = state["param_groups"][-1]["params"]
    for number in numbers:
        before, after = state["state"][number], upgraded["state"][number]
        assert torch.equal(after["exp_avg"], before["exp_avg"].flip(-1))
    assert torch.equal(upgraded["state"][0]["exp_avg"], state["state"][0]["exp_avg"])

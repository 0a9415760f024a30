"""Runs made by 0.1.0, whose heads served whole chains, still open, resume and report."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from celstack.checkpoint import read_checkpoint
from celstack.cli import celstack, run_recipe
from celstack.evaluate import score
from celstack.openrun import open_run

RUNS = Path(__file__).parent.parent / "runs"


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

    assert "The health check found nothing" in (finished / "report.html").read_text()

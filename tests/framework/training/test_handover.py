"""From computing to predicting in one recipe, as a newcomer meets it."""

import json
import tomllib
from pathlib import Path

import pytest
import torch

import celstack

HANDOVER = """\
metrics = ["mse"]
transforms.layer = ["color", "position"]
evaluation.images = 8

[dataset]
use = "tetrominoes"
count = 32
test_count = 8
per_image = 1

[sprites]
use = "pixels"
count = 2
size = [24, 24]

[compositor]
use = "occlusion"
layers = 2

[selector]
use = "greedy"
empty_cost = 1e-4

[predictor]
use = "network"
encoder = "strided"

[[stages]]
name = "learning"
steps = 1

[stages.selector]
use = "matching"
sweeps = 1

[[stages]]
name = "teaching"
steps = 2
teacher = { use = "matching", sweeps = 1, empty_cost = 1e-4 }

[[stages]]
name = "tuning"
steps = 1
"""


@pytest.fixture
def finished(write, command, tmp_path):
    """The folder of a finished run."""
    done = command("run-recipe", write(HANDOVER), "--out", str(tmp_path / "runs"), "--quiet")
    assert done.code == 0, done.complaint
    return Path(done.said.strip())


def test_the_resolved_recipe_has_the_selectors_of_stages_in_full(finished):
    stages = tomllib.loads((finished / "resolved.toml").read_text())["stages"]

    named = [stage["selector"]["use"] for stage in stages if "selector" in stage]
    assert named == ["matching"]
    assert stages[1]["teacher"]["sweeps"] == 1
    assert stages[1]["teacher"]["refine"] == 0


def test_a_finished_run_explains_in_one_pass_with_the_network(finished):
    decomposer = celstack.open_run(finished).decomposer

    assert decomposer.selector.name == "greedy"
    with torch.no_grad():
        assert len(decomposer.explain(torch.rand(3, 3, 35, 35))) == 3


def test_it_is_scored_again_as_it_was(finished, command):
    done = command("celstack", "evaluate", str(finished))

    assert done.code == 0, done.complaint
    again = json.loads((finished / "evaluations" / "test.json").read_text())
    assert again["metrics"] == json.loads((finished / "metrics.json").read_text())


def test_it_takes_images_apart(finished, command, tmp_path):
    image, apart = finished / "examples.png", tmp_path / "apart"

    done = command("celstack", "decompose", str(finished), str(image), "--out", str(apart))

    assert done.code == 0, done.complaint
    assert list(apart.rglob("scene.json"))


def test_a_mistake_in_the_selector_of_a_stage_is_told_with_its_place(write, command):
    wrong = HANDOVER.replace('use = "matching"\nsweeps', 'use = "matching"\nsweep')

    done = command("celstack", "check", write(wrong))

    assert done.code == 2
    assert "stages[0].selector.sweep: matching takes sweeps" in done.complaint

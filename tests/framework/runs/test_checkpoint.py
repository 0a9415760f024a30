import json
from pathlib import Path

import pytest
import torch

from celstack.errors import CelstackError
from celstack.runs.checkpoint import (
    RESUME_KEYS,
    check_resumable,
    pack_checkpoint,
    restore_checkpoint,
)
from celstack.testing.model import PlainSelector, plain_decomposer

PATH = Path("checkpoint.pt")


def make():
    """Return a model of plain parts, its optimiser, and counts of its three sprites."""
    decomposer = plain_decomposer(PlainSelector())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    optimizer = torch.optim.Adam(decomposer.parameters())
    return decomposer, optimizer, torch.zeros(3, dtype=torch.int64)


@pytest.fixture
def state():
    """What is known of a model that has learned for a step."""
    decomposer, optimizer, usage = make()
    decomposer.sprites.images().sum().backward()
    optimizer.step()
    decomposer.sprites_frozen = True
    return pack_checkpoint(
        decomposer, optimizer, usage + torch.tensor([1, 0, 2]), (7, 1), recipe=""
    )


def test_model_optimiser_and_counts_come_back(state):
    decomposer, optimizer, usage = make()

    restore_checkpoint(state, decomposer, optimizer, usage, Path())

    weights = decomposer.state_dict()
    assert all(torch.equal(state["model"][name], weights[name]) for name in weights)
    moments = [
        one["state"][0]["exp_avg"] for one in (state["optimizer"], optimizer.state_dict())
    ]
    assert torch.equal(*moments)
    assert usage.tolist() == [1, 0, 2]
    assert decomposer.sprites_frozen


def test_the_random_state_comes_back(state):
    expected = torch.rand(3)
    again = make()

    restore_checkpoint(state, *again, Path())

    # Nothing was drawn between packing and the first three numbers.
    assert torch.equal(torch.rand(3), expected)


def test_an_optimiser_of_other_parameters_is_refused(state):
    decomposer, _, usage = make()
    optimizer = torch.optim.Adam(decomposer.sprites.parameters())

    with pytest.raises(CelstackError, match=r"checkpoint\.pt does not match the recipe: "):
        restore_checkpoint(state, decomposer, optimizer, usage, Path())


def test_counts_of_other_sprites_are_refused(state):
    decomposer, optimizer, _ = make()
    usage = torch.zeros(4, dtype=torch.int64)

    with pytest.raises(CelstackError, match=r"checkpoint\.pt does not match the recipe: "):
        restore_checkpoint(state, decomposer, optimizer, usage, Path())


def compare(before, now):
    """Compare two recipes as a run that goes on does."""
    state = {key: kind() for key, kind in RESUME_KEYS.items()}
    check_resumable({**state, "recipe": json.dumps(before)}, json.dumps(now), PATH)


RECIPE = {
    "seed": 0,
    "dataset": {"use": "shapes", "root": "here"},
    "training": {"workers": 0, "batch_size": 4},
    "stages": [{"steps": 2}, {"steps": 3}],
    "metrics": [{"use": "mse"}],
}


def test_the_same_recipe_is_the_same():
    compare(RECIPE, RECIPE)


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": {"use": "shapes", "root": "there"}},
        {"dataset": {"use": "shapes"}},
        {"training": {"workers": 2, "batch_size": 4, "checkpoint_every": 9}},
        {"metrics": []},
        {"observers": ["progress"]},
        {"evaluation": {"images": 3}},
        {"description": "new"},
        {"published": {"us": {"ari": 1.0}}},
    ],
)
def test_what_nothing_learned_depends_on_may_change(change):
    compare(RECIPE, {**RECIPE, **change})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed was 0 and is 1"),
        (
            {"dataset": {"use": "signs", "root": "here"}},
            "dataset.use was 'shapes' and is 'signs'",
        ),
        ({"stages": [{"steps": 2}, {"steps": 4}]}, "stages[1].steps was 3 and is 4"),
        (
            {"stages": [{"steps": 2}]},
            "stages was [{'steps': 2}, {'steps': 3}] and is [{'steps': 2}]",
        ),
        ({"selector": {"use": "greedy"}}, "selector was nothing and is {'use': 'greedy'}"),
        (
            {"seed": 1, "stages": [{"steps": 9}, {"steps": 9}]},
            "seed was 0 and is 1, and 2 more",
        ),
    ],
)
def test_what_differs_is_said(change, said):
    with pytest.raises(CelstackError) as refused:
        compare(RECIPE, {**RECIPE, **change})

    assert str(refused.value) == f"checkpoint.pt: its recipe differs from the run's: {said}"


def test_a_run_made_without_a_recipe_has_none_to_differ():
    state = {key: kind() for key, kind in RESUME_KEYS.items()}

    check_resumable(state, json.dumps(RECIPE), PATH)

"""The plan: a recipe for every combination, or all mistakes at once."""

import pytest

from celstack.errors import CelstackError
from celstack.runs.sweep.plan import make_plan


@pytest.fixture
def plan(small, catalog):
    """Plan a sweep of the small recipe."""
    return lambda *grid, fixed=(): make_plan(small, fixed, grid, catalog)


@pytest.fixture
def refusal(plan, small):
    """Return what is wrong with a sweep, line by line, without the recipe's name."""

    def refuse(*grid, fixed=()):
        with pytest.raises(CelstackError) as refused:
            plan(*grid, fixed=fixed)
        lines = str(refused.value).replace(f"{small}: ", "").splitlines()
        return [line.strip() for line in lines]

    return refuse


def test_every_combination_has_its_recipe(plan):
    made = plan("sprites.count=3,4", "seed=0,1", fixed=["stages[0].steps=7"])

    tables = [run.resolved.as_table() for run in made.runs]
    assert [(t["sprites"]["count"], t["seed"]) for t in tables] == [
        (3, 0),
        (3, 1),
        (4, 0),
        (4, 1),
    ]
    assert all(table["stages"][0]["steps"] == 7 for table in tables)


def test_what_is_fixed_stays_when_the_part_that_takes_it_varies(plan):
    made = plan("selector.use=greedy,exhaustive", fixed=["selector.empty_cost=0.5"])

    assert [run.resolved.as_table()["selector"]["empty_cost"] for run in made.runs] == [0.5] * 2


def test_all_mistakes_are_told_at_once_and_each_once(refusal):
    lines = refusal(
        "sprites.count=0,2,-1", "selector.sweep=1,3", "seed", fixed=["training.batch=3"]
    )

    assert lines[0] == "5 problems"
    assert lines[1].startswith("--grid seed: expected path=value")
    assert [line.partition(":")[0] for line in lines[2:]] == [
        "sprites.count",
        "selector.sweep",
        "training.batch",
        "sprites.count",
    ]
    assert "did you mean 'sweeps'" in lines[3]
    assert "not 0" in lines[2]
    assert "not -1" in lines[5]


def test_a_mistake_that_only_some_combinations_make_says_which(refusal):
    (line,) = refusal("selector.use=greedy,exhaustive", "seed=0,1", fixed=["selector.most=9"])

    assert line.startswith("selector.most: greedy takes sweeps, empty_cost")
    assert line.endswith("(with selector.use = 'greedy')")


def test_an_index_that_is_not_there_is_told_as_it_was_said(refusal):
    (line,) = refusal("stages[5].steps=1,2")

    assert line == "--grid stages[5]: stages has only 1 items, counted from 0"


def test_two_runs_that_are_the_same_are_refused(refusal):
    (line,) = refusal("selector=greedy,{use='greedy'}")

    assert line == (
        "--grid: two runs are the same: selector = 'greedy', and selector = {'use': 'greedy'}"
    )


def test_a_sweep_over_nothing_is_refused(refusal):
    assert refusal() == ["--grid: required, such as --grid selector.sweeps=1,3"]


def test_a_recipe_that_is_not_there_is_one_line(catalog):
    with pytest.raises(CelstackError, match=r"^nowhere.toml: no such recipe"):
        make_plan("nowhere.toml", [], ["seed"], catalog)

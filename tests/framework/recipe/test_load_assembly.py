"""From the name of a recipe to its assembly, in one call."""

from pathlib import Path

import pytest

import celstack
from celstack import CelstackError


def test_a_bundled_recipe_is_an_assembly():
    made = celstack.assembly("smoke.toml", seed=1)

    assert isinstance(made, celstack.Assembly)
    assert made.seed == 1
    assert made.dataset.name == "tetrominoes"
    assert [stage.steps for stage in made.stages] == [400, 1000]


def test_overrides_are_tables_that_are_merged_or_paths(small):
    made = celstack.assembly(
        Path(small),
        training={"batch_size": 8},
        sprites={"count": 4},
        selector="exhaustive",
        **{"stages[0].steps": 7, "training.head_rate": 0.5},
    )

    assert (made.training.batch_size, made.training.head_rate) == (8, 0.5)
    assert (made.sprites.count, made.sprites.size) == (4, (24, 24))
    assert made.selector.name == "exhaustive"
    assert made.stages[0].steps == 7


def test_tuples_are_lists_and_none_is_a_missing_key(write, small):
    lines = ['extends = "my.toml"', 'backgrounds = { use = "pixels", count = 1 }']
    child = write("\n".join(lines), "child.toml")
    assert Path(small).name == "my.toml"

    made = celstack.assembly(
        child, backgrounds=None, stages=({"steps": 1, "name": None},), metrics=()
    )

    assert made.backgrounds is None
    assert [stage.steps for stage in made.stages] == [1]
    assert made.metrics == []


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            {"selektor": "greedy"},
            "selektor: there is no such section; did you mean 'selector'?",
        ),
        ({"stages[3].steps": 1}, "override stages[3]: stages has only 1 items, counted from 0"),
        ({"a b": 1}, "override a b: write path=value, as in selector.sweeps=3"),
        ({"extends": "smoke.toml"}, "override extends: 'extends' cannot be overridden"),
        (
            {"training": {"batch_size": 0}},
            "training.batch_size: must be an integer of at least",
        ),
        ({"metrics": [None]}, "metrics[0]: must be a table that says which metric to use"),
    ],
)
def test_mistakes_are_told_as_in_recipes(small, overrides, line):
    with pytest.raises(CelstackError) as error:
        celstack.assembly(small, **overrides)

    assert line in str(error.value)


def test_there_is_no_such_recipe():
    with pytest.raises(CelstackError, match=r"smok: no such recipe.* did you mean 'smoke'"):
        celstack.assembly("smok")

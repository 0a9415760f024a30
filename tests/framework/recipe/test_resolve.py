import datetime
import tomllib

import published
import pytest
import tomli_w

from celstack.errors import RecipeError
from celstack.recipe.load import Recipe, bundled_names, read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

PLUGIN = """
from pathlib import Path
from typing import Any
from celstack import Metric, hookimpl
SECRET = object()

class Zero(Metric):
    def __init__(self, {arguments}): pass
    def reset(self): pass
    def update(self, scene, rendering, batch): pass
    def compute(self): return 0.0

@hookimpl
def celstack_metrics():
    return {{"zero": Zero}}
"""


@pytest.fixture
def resolved(small, catalog):
    """Resolve the small recipe, with overrides."""
    return lambda *overrides: resolve(read_recipe(small, overrides), catalog).as_table()


@pytest.fixture
def problems(small, catalog):
    """Say what is wrong with the small recipe, with overrides."""

    def complain(*overrides):
        with pytest.raises(RecipeError) as refused:
            resolve(read_recipe(small, overrides), catalog)
        return [str(problem) for problem in refused.value.problems]

    return complain


# What is resolved.


def test_every_option_has_its_value(resolved):
    assert resolved()["selector"] == {"use": "greedy", "sweeps": 1}


def test_sections_left_out_have_their_defaults(resolved):
    assert resolved()["training"]["batch_size"] == 32


def test_parts_inside_parts_are_resolved(resolved):
    encoder = resolved("predictor.encoder.width=8")["predictor"]["encoder"]

    assert encoder == {"use": "strided", "width": 8, "features": 128}


def test_numbers_become_what_the_option_is(resolved):
    assert type(resolved("sprites.jitter=1")["sprites"]["jitter"]) is float


def test_defaults_become_what_the_option_is(resolved):
    assert type(resolved()["training"]["weight_decay"]) is float


def with_data() -> list[str]:
    """List the bundled recipes whose datasets are in the kit; tests/test_recipes.py has all."""
    known = Catalog().names("dataset")
    return [n for n in bundled_names() if read_recipe(n).table["dataset"]["use"] in known]


@pytest.mark.parametrize("name", [*with_data(), "small"])
def test_a_resolved_recipe_resolves_to_itself(catalog, small, write, name):
    # What a recipe leaves to its images needs some.
    folder = published.pictures().as_posix()
    said = [f"dataset.root='{folder}'"] if name == "images.toml" else []
    first = resolve(read_recipe(small if name == "small" else name, said), catalog).as_table()

    again = resolve(read_recipe(write(tomli_w.dumps(first), "resolved.toml")), catalog)

    assert tomli_w.dumps(again.as_table()) == tomli_w.dumps(first)


def test_a_description_of_odd_characters_survives_the_way_through_a_file(resolved):
    odd = 'quotes " and \' and \\ and \t and é and "" \U0001f600'

    table = resolved(tomli_w.dumps({"description": odd}).strip())

    assert tomllib.loads(tomli_w.dumps(table))["description"] == odd


@pytest.mark.parametrize(
    ("arguments", "said", "kept"),
    [
        ("x: Path", "'a/b'", "a/b"),
        ("x: Any", "2020-01-02", datetime.date(2020, 1, 2)),
        ("x: Any", "[1, {a = 'b'}]", [1, {"a": "b"}]),
        ("x: float | None = 2", "3", 3.0),
    ],
)
def test_what_an_option_was_given_is_said_again(small, plugin, arguments, said, kept):
    entry = plugin("metric-zero", PLUGIN.format(arguments=arguments))
    catalog = Catalog([*(p.entry for p in Catalog().plugins), entry])
    recipe = read_recipe(small, [f"metrics=[{{use='zero', x={said}}}]"])

    (metric,) = resolve(recipe, catalog).as_table()["metrics"]

    assert metric["x"] == kept


def test_a_default_that_toml_cannot_say_stays_unsaid(small, plugin):
    entry = plugin("metric-zero", PLUGIN.format(arguments="x: Any = SECRET"))
    catalog = Catalog([*(p.entry for p in Catalog().plugins), entry])

    table = resolve(read_recipe(small, ["metrics=['zero']"]), catalog).as_table()

    assert table["metrics"] == [{"use": "zero"}]


# What is wrong.


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("extra.x=1", "extra: there is no such section (known: dataset, sprites, "),
        (
            "transform.layer=[]",
            "transform: there is no such section; did you mean 'transforms'?",
        ),
        ("selector.sweep=1", "selector.sweep: greedy takes sweeps, empty_cost; did you mean"),
        ("metrics[0].x=1", "metrics[0].x: mse takes no options"),
        ("training.rate=1", "training.rate: training takes batch_size, "),
        ("stages[0].step=1", "stages[0].step: stages[0] takes name, steps, "),
        ("selector.sweeps=many", "selector.sweeps: must be an integer, not 'many'"),
        ("selector.sweeps=0", "selector.sweeps: must be an integer of at least 1, not 0"),
        (
            "sprites.size=[24]",
            "sprites.size: must be a list of 2, each an integer of at least 1",
        ),
        ("sprites.size=[24, 0]", "sprites.size[1]: must be an integer of at least 1, not 0"),
        ("seed=-1", "seed: must be an integer of at least 0 and less than 4294967296, not -1"),
        (
            "selector=gredy",
            "selector.use: no selector is called 'gredy'; did you mean 'greedy'?",
        ),
        ("selector=color", "selector.use: 'color' is a transform, not a selector (known: "),
        ("selector=3", "selector: must be a table that says which selector to use, not 3"),
        (
            "selector={sweeps=1, use=3}",
            "selector.use: must be a string, not 3 (known selectors: ",
        ),
        ("training=fast", "training: must be a table, not 'fast'"),
        ("stages=[3]", "stages[0]: must be a table, not 3"),
        ("metrics=mse", "metrics: must be a list, not 'mse'"),
        (
            "transforms.layer={use='color'}",
            "transforms.layer: must be a list, not {'use': 'color'}; "
            "write [[transforms.layer]], with two brackets",
        ),
        ("stages={steps=3}", "stages: must be a list, not {'steps': 3}; write [[stages]]"),
        (
            "stages[0].transforms=['colour']",
            "stages[0].transforms[0]: the recipe has no transform 'colour'; "
            "did you mean 'color'? (it has: color, position)",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(problems, override, problem):
    (found,) = problems(override)

    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"a b\n": 1}, r"'a b\n': there is no such section"),
        ({"selector": {"use": "greedy", "a.b": 1}}, "selector.'a.b': greedy takes sweeps"),
        (
            {"selector": {"sweeps": 1}},
            "selector.use: is missing (known selectors: exhaustive, fitting, greedy",
        ),
        ({"sprites": {"use": "pixels"}}, "sprites.count: is missing; it must be an integer of"),
        ({"predictor": {"use": "network"}}, "predictor.encoder: is missing; known encoders: "),
        ({}, "dataset: is missing; known datasets: "),
    ],
)
def test_a_mistake_of_a_whole_table_is_told_with_its_place(catalog, table, problem):
    with pytest.raises(RecipeError) as refused:
        resolve(Recipe("my", "my.toml", table), catalog)

    assert any(str(found).startswith(problem) for found in refused.value.problems)


def test_all_mistakes_are_in_one_report(problems):
    found = problems("selector.sweep=1", "sprites.count=0", "stages[0].transforms=['x']")

    assert [line.split(":")[0] for line in found] == [
        "sprites.count",
        "selector.sweep",
        "stages[0].transforms[0]",
    ]


def test_a_transform_with_a_mistake_is_not_missed_by_the_stages_too(problems):
    found = problems("transforms.layer[0].use=colour", "stages[0].transforms=['color']")

    assert [line.split(":")[0] for line in found] == ["transforms.layer[0].use"]


def test_a_broken_plugin_whose_source_is_unclear_is_told_with_its_place(small, plugin):
    entry = plugin("metric-zero", "import h5pie")
    catalog = Catalog([*(p.entry for p in Catalog().plugins), entry])

    with pytest.raises(
        RecipeError, match=r"metrics\[0\].use: broken plugin: metric-zero \(acme"
    ):
        resolve(read_recipe(small, ["metrics=['zero']"]), catalog)

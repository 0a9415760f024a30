"""A run made in Python is a run: all that commands need is in its folder."""

import copy
import json
import logging
import pickle
import tomllib
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import pytest
import torch
from annotated_types import Ge

import celstack
from celstack import CelstackError, Dataset, Evaluation, Observer, Stage, Training, Transforms
from celstack.interfaces.part import UNKNOWN, constructor_arguments
from celstack.recipe.build import assemble
from celstack.recipe.load import Recipe, bundled_names
from celstack.recipe.load_assembly import resolve_recipe
from celstack.recipe.resolve import resolve
from celstack.recipe.write_assembly import recipe_of
from celstack.registry.catalog import Catalog
from celstack.training.run_folder import load_planned
from celstack_kit import (
    Color,
    Greedy,
    Mse,
    Network,
    Ordered,
    Pixels,
    Position,
    Strided,
    Tetrominoes,
)


def assembled(**changes):
    parts = {
        "dataset": Tetrominoes(64, test_count=16, per_image=1),
        "sprites": Pixels(count=2, size=(24, 24)),
        "transforms": Transforms(layer=[Color(), Position()]),
        "compositor": Ordered(layers=1),
        "selector": Greedy(empty_cost=0.001),
        "predictor": Network(encoder=Strided(width=4, features=8), hidden=8),
        "training": Training(batch_size=16, betas=(0.9, 0.99)),
        "stages": [
            Stage(steps=2, transforms=["position"], freeze_sprites=True),
            Stage(steps=2),
        ],
        "metrics": [Mse()],
        "evaluation": Evaluation(images=16),
        "seed": 3,
    }
    return celstack.Assembly(**parts | changes)


class Noise(Dataset):
    """Two gray levels; a class of somebody's notebook."""

    image_shape = (3, 35, 35)
    splits = ("train", "test")

    def __init__(self, images: int = 8) -> None:
        self.images = images

    def count(self, split):
        return self.images

    def read(self, split, indices):
        levels = torch.tensor([index % 2 / 2 for index in indices])
        shape = (len(levels), *self.image_shape)
        return celstack.Batch(images=levels[:, None, None, None].expand(shape).contiguous())


class Diary(Observer):
    """Takes note of how often it is called."""

    steps = 0

    @celstack.hookimpl
    def celstack_step_finished(self, step):
        self.steps = step


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run made in Python."""
    return celstack.run(assembled(), tmp_path_factory.mktemp("runs"))


def test_it_is_opened_as_it_was_trained(trained):
    opened = celstack.open_run(trained.folder)

    for name, value in trained.decomposer.state_dict().items():
        assert torch.equal(value, opened.decomposer.state_dict()[name]), name
    images = assembled().dataset.read("test", range(4)).images
    with torch.no_grad():
        here, there = (d.explain(images) for d in (trained.decomposer, opened.decomposer))
    assert torch.equal(here.layer_params, there.layer_params)
    assert opened.assembly.training == assembled().training
    assert opened.assembly.predictor.encoder.width == 4


def test_every_command_works_on_it(trained, command, tmp_path):
    run = str(trained.folder)
    image = str(next((trained.folder / "examples").glob("*.png")))
    commands = [
        ("evaluate", run),
        ("report", run),
        ("table", run, "--each"),
        ("compare", run, run, "--out", str(tmp_path / "compare.html")),
        ("decompose", run, image, "--out", str(tmp_path / "parts")),
        ("sprites", run, "--out", str(tmp_path / "sprites")),
        ("vary", run, "--out", str(tmp_path / "vary.png")),
        ("check", str(trained.folder / "resolved.toml")),
        ("check", str(trained.folder / "recipe.toml")),
    ]

    for arguments in commands:
        done = command("celstack", *arguments)
        assert done.code == 0, (arguments[0], done.complaint)

    scored = command("celstack", "evaluate", run)
    assert "same as in metrics.json" in scored.said


def test_its_recipe_is_what_was_assembled_with_all_defaults(trained):
    resolved = tomllib.loads((trained.folder / "resolved.toml").read_text())
    given = tomllib.loads((trained.folder / "recipe.toml").read_text())

    assert resolved["dataset"]["count"] == 64
    assert resolved["dataset"]["pieces"]
    assert given["dataset"] == {
        "use": "tetrominoes",
        "count": 64,
        "test_count": 16,
        "per_image": 1,
    }
    assert given["predictor"]["encoder"] == {"use": "strided", "width": 4, "features": 8}
    assert given["transforms"]["layer"] == [{"use": "color"}, {"use": "position"}]
    assert given["stages"][0]["transforms"] == ["position"]
    assert given["training"]["betas"] == [0.9, 0.99]
    assert json.loads((trained.folder / "environment.json").read_text())["packages"]


def test_the_recipe_of_an_assembly_is_that_which_it_was_built_from(catalog):
    checked = 0
    for name in bundled_names():
        if "images" in name:
            continue  # asks for a folder
        resolved = resolve_recipe(name, catalog)
        try:
            made = assemble(resolved, catalog)
        except CelstackError:
            continue  # its data is not on this machine
        written = recipe_of(made, catalog)
        assert written.problems == written.left_out == []
        assert written.resolved.as_table() == resolved.as_table()
        checked += 1
    assert checked >= 8


def test_stopped_in_python_it_is_resumed_by_the_command(trained, command, tmp_path):
    class Stop(Observer):
        @celstack.hookimpl
        def celstack_step_finished(self, step):
            if step == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        celstack.run(assembled(observers=[Stop()]), tmp_path)
    (folder,) = (tmp_path / "tetrominoes").iterdir()

    done = command("run-recipe", "--resume", str(folder))

    assert done.code == 0, done.complaint
    before = celstack.open_run(trained.folder).decomposer.state_dict()
    for name, value in celstack.open_run(folder).decomposer.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_another_assembly_does_not_resume_it(trained):
    with pytest.raises(CelstackError) as error:
        celstack.run(assembled(seed=4), trained.folder, resume=True)

    assert "its run had another assembly: seed was 3 and is 4; without" in str(error.value)


def test_a_part_that_is_no_plugin_is_told_and_the_run_opens_with_its_assembly(
    tmp_path, caplog, command
):
    made = assembled(dataset=Noise(), evaluation=Evaluation(images=8))
    with caplog.at_level(logging.WARNING):
        done = celstack.run(made, tmp_path)

    (line,) = caplog.messages
    assert "dataset: Noise is not an installed plugin" in line
    assert "celstack.open_run(folder, assembly=assembly)" in line
    assert "\n" not in line
    opened = celstack.open_run(done.folder, assembly=made)
    for name, value in done.decomposer.state_dict().items():
        assert torch.equal(value, opened.decomposer.state_dict()[name]), name
    assert command("celstack", "table", str(done.folder)).code == 0
    # A report needs no images; an evaluation does.
    assert command("celstack", "report", str(done.folder)).code == 0
    evaluated = command("celstack", "evaluate", str(done.folder))
    assert evaluated.code == 2
    assert ":Noise': this is a class of a run that was made in Python" in evaluated.complaint
    assert celstack.run(made, done.folder, resume=True).scores == done.scores
    with pytest.raises(CelstackError, match="takes an assembly, or overrides"):
        celstack.open_run(done.folder, ["seed=1"], assembly=made)


def test_a_run_opens_with_its_assembly_where_its_images_are_not(trained):
    class Lost(Noise):
        @property
        def image_shape(self):
            raise FileNotFoundError("images.npy")

    opened = celstack.open_run(trained.folder, assembly=assembled(dataset=Lost()))

    assert opened.decomposer.canvas == (35, 35)


def test_the_packages_of_its_plugins_are_known_though_one_part_is_none():
    made = assembled(dataset=Noise())
    whole = recipe_of(assembled(), Catalog()).resolved.packages

    packages = recipe_of(made, Catalog()).resolved.packages

    assert "encoder-strided" in packages
    assert packages == {k: v for k, v in whole.items() if k != "dataset-tetrominoes"}


TRACED = """
from typing import Any

from celstack import hookimpl
from celstack_kit import Greedy


class Traced(Greedy):
    def __init__(self, trace: Any = print, depth: int | None = 3) -> None:
        super().__init__()


@hookimpl
def celstack_selectors():
    return {"traced": Traced}
"""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"trace": len},
            "selector.trace: a value of type builtin_function_or_method cannot be",
        ),
        ({"trace": [1, {2: 3}]}, "selector.trace[1]: a value of type dict cannot be written"),
        ({"depth": None}, "selector.depth: a value of type NoneType cannot be written in a"),
    ],
)
def test_an_argument_that_toml_cannot_hold_is_told_by_its_path(plugin, options, problem):
    catalog = Catalog([*entry_points(group="celstack"), plugin("selector-traced", TRACED)])
    traced = catalog.load("selector", "traced")

    written = recipe_of(assembled(selector=traced(**options)), catalog)

    assert str(written.problems[0]).startswith(problem)
    assert written.resolved.as_table()["selector"]["use"] == f"{traced.__module__}:Traced"
    with pytest.raises(CelstackError, match="was made in Python, in a way that a recipe"):
        resolve(Recipe("", "", written.resolved.as_table()), catalog)


def test_defaults_need_not_be_written(plugin):
    catalog = Catalog([*entry_points(group="celstack"), plugin("selector-traced", TRACED)])
    traced = catalog.load("selector", "traced")

    written = recipe_of(assembled(selector=traced(trace=print, depth=np.int64(4))), catalog)

    assert written.problems == []
    assert written.resolved.as_table()["selector"] == {"use": "traced", "depth": 4}


def test_a_long_list_of_problems_is_still_one_line(tmp_path, caplog):
    class Mine(Position):
        """Not a plugin."""

    made = assembled(transforms=Transforms(layer=[Color(), *(Mine() for _ in range(5))]))
    stages = [Stage(steps=1)]
    with caplog.at_level(logging.WARNING):
        celstack.run(attrs.evolve(made, stages=stages), tmp_path)

    assert (
        "transforms.layer[3]: Mine is not an installed plugin; and 2 more), so" in caplog.text
    )


def test_a_class_of_a_notebook_may_be_renamed_before_it_is_resumed(tmp_path):
    class Renamed(Noise):
        """The same by another name."""

    made = assembled(dataset=Noise(), evaluation=Evaluation(images=8))
    done = celstack.run(made, tmp_path)

    again = celstack.run(attrs.evolve(made, dataset=Renamed()), done.folder, resume=True)

    assert again.scores == done.scores


def test_an_observer_of_a_notebook_costs_the_run_nothing(tmp_path, caplog):
    diary = Diary()
    with caplog.at_level(logging.WARNING):
        done = celstack.run(assembled(observers=[diary]), tmp_path)

    assert diary.steps == 4
    assert celstack.open_run(done.folder).step == 4
    (line,) = caplog.messages
    assert "would go on without some observers (observers[0]: Diary is not an inst" in line


def test_a_recipe_is_run_by_its_name(small, tmp_path, trained):
    done = celstack.run(small, tmp_path / "runs")

    assert done.folder.parent.name == "my"
    assert (done.folder / "recipe.toml").read_text() == Path(small).read_text()
    assert celstack.open_run(done.folder).step == 2
    assert celstack.run(small).scores == done.scores
    assert celstack.run(small, done.folder, resume=True).scores == done.scores


def test_what_is_neither_assembly_nor_recipe_is_one_line():
    with pytest.raises(CelstackError, match=r"run\(5\): give an Assembly, or the path or name"):
        load_planned(5)


@pytest.mark.parametrize("made", ["dataclass", "attrs", "plain"])
def test_arguments_are_known_however_a_class_is_made(made):
    class Base(Noise):
        def __init__(self, images: int = 8, levels: Annotated[int, Ge(1)] = 2) -> None:
            super().__init__(images=images + 1)

    @dataclass
    class Data(Noise):
        images: int = 8
        levels: int = 2

        def __post_init__(self):
            super().__init__(self.images)

    @attrs.define
    class Defined(Noise):
        images: int = 8
        levels: int = 2

    part = {"dataclass": Data, "attrs": Defined, "plain": Base}[made](4, levels=5)

    assert constructor_arguments(part) == {"images": 4, "levels": 5}


class Shifted(Noise):
    """Keeps its argument under another name."""

    def __init__(self, images: int = 8, change: object = None) -> None:
        super().__init__(images)
        self.shift = 0 if change is None else 1


def test_copies_of_a_part_know_its_arguments_and_pickles_do_not_carry_them():
    part = Shifted(4, change=iter([1]))

    copied, unpickled = copy.deepcopy(part), pickle.loads(pickle.dumps(part))

    assert constructor_arguments(copied) == constructor_arguments(part)
    assert constructor_arguments(unpickled) == {"images": 4, "change": UNKNOWN}


def test_an_argument_that_is_not_known_is_not_guessed(plugin):
    catalog = Catalog([*entry_points(group="celstack"), plugin("selector-traced", TRACED)])
    unpickled = pickle.loads(pickle.dumps(catalog.load("selector", "traced")()))

    problems = recipe_of(assembled(selector=unpickled), catalog).problems

    assert "selector.trace: its value is not known any more" in map(str, problems)

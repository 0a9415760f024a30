"""What the README shows, works."""

import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest
import torch

import celstack
from celstack.cli.commands import sweep
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.runs.sweep.plan import make_plan

README_FILE = Path(__file__).parent.parent / "README.md"
README = README_FILE.read_text()
SHORT = [
    "stages[0].steps=3",
    "stages[1].steps=3",
    "dataset.count=64",
    "evaluation.images=16",
    "observers=[]",
]


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_assembly_is_the_same_run_as_the_recipe():
    assembly_block = next(block for block in python_blocks() if "Assembly(" in block)
    block = assembly_block.replace("steps=400", "steps=3").replace("steps=1000", "steps=3")
    block = block.replace("count=4096", "count=64")
    block = block.replace(
        "observers=[Progress()],", "evaluation=celstack.Evaluation(images=16),"
    )
    here: dict[str, object] = {}
    exec(block, here)
    in_python = here["trained"]

    catalog = Catalog()
    in_toml = celstack.run(
        assemble(resolve(read_recipe("smoke.toml", SHORT), catalog), catalog)
    )

    assert in_python.scores == pytest.approx({"mse": in_toml.scores["mse"]}, rel=0, abs=0)
    for name, value in in_toml.decomposer.state_dict().items():
        assert torch.equal(value, in_python.decomposer.state_dict()[name]), name


@pytest.mark.parametrize("line", re.findall(r"^    celstack sweep (.+)$", README, re.MULTILINE))
def test_every_sweep_it_shows_can_be_planned(line):
    parser = ArgumentParser()
    sweep.add_arguments(parser)
    said = parser.parse_args(shlex.split(line))

    assert len(make_plan(said.recipe, said.set, said.grid, Catalog()).runs) > 2


def test_the_python_assembly_takes_about_fifteen_lines():
    block = next(block for block in python_blocks() if "Assembly(" in block)
    code = [line for line in block.splitlines() if line.strip() and "import" not in line]

    assert len(code) <= 18


def test_the_two_commands_are_there():
    assert "pip install -e . && run-recipe tetrominoes.toml" in README
    assert 'pip install -e ".[dev]" && pytest' in README


def test_every_picture_and_file_it_names_is_there():
    named = re.findall(r"\]\(([^)#]+)\)", README)
    here = [name for name in named if not name.startswith("http")]

    assert here
    assert all((README_FILE.parent / name).exists() for name in here)


def test_nothing_is_left_to_be_filled_in():
    assert "@@" not in README

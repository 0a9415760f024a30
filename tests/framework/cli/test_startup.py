"""What can be answered without torch is; tests/benchmarks/startup.py measures the gain."""

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys
from celstack import cli
sys.argv = json.loads(sys.argv[1])
entry = cli.run_recipe if sys.argv[0] == "run-recipe" else cli.celstack
try:
    entry()
except SystemExit as stopped:
    print()
    print(json.dumps([stopped.code, sorted(sys.modules)]))
"""


def imported_by(*command):
    """Run a command in a fresh Python; return its exit code and the modules it imported."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(command)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, set(modules)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["run-recipe", "--help"], 0),
        (["celstack", "--help"], 0),
        (["celstack", "--version"], 0),
        (["celstack", "plugins"], 0),
        (["celstack", "recipes"], 0),
        (["celstack", "show", "selector", "greedy"], 0),
        (["celstack", "table", "missing"], 2),
        (["celstack", "evaluate", "missing"], 2),
        (["celstack", "report", "--help"], 0),
        (["celstack", "report", "missing"], 2),
        (["celstack", "compare", "missing"], 2),
        (["celstack", "vary", "missing"], 2),
        (["celstack", "sweep", "--help"], 0),
        (["celstack", "sweep", "smoke.toml"], 2),
        (["celstack", "sweep", "smoke.toml", "--grid", "selector.sweep=1,3"], 2),
        (["celstack", "sweep", "smoke.toml", "--grid", "seed=0", "--launcher", "slurm"], 2),
        (["run-recipe", "smoke.toml", "--seeds", "2", "--seed", "1"], 2),
        (["celstack", "data", "--help"], 0),
        (["celstack", "data", "get", "--help"], 0),
        (["celstack", "data"], 2),
        (["run-recipe"], 2),
        (["run-recipe", "--resume", "missing"], 2),
        (["run-recipe", "--resume", "missing", "--seed", "1"], 2),
        (["run-recipe", "missing.toml"], 2),
        (["run-recipe", "smoke.toml", "--set", "selector.sweep=1"], 2),
        (["run-recipe", "smoke.toml", "--set", "selector.use=gredy"], 2),
        (["run-recipe", "smoke.toml", "--set", "sprites.count=0"], 2),
        (["celstack", "check", "smoke.toml", "--set", "stages[0].transforms=['tps']"], 2),
        (["celstack", "check", "smoke.toml", "--set", "extra=1"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_torch_is_not_imported_by(command, code):
    stopped, modules = imported_by(*command)

    assert stopped == code
    assert modules.isdisjoint({"torch", "numpy", "rich", "jaxtyping", "attr"})


def test_help_does_not_even_look_for_plugins():
    _, modules = imported_by("celstack", "--help")

    assert modules.isdisjoint({"importlib.metadata", "tomllib", "celstack.registry.catalog"})


def test_a_recipe_without_mistakes_does_import_torch():
    _, modules = imported_by("celstack", "check", "smoke.toml")

    assert "torch" in modules

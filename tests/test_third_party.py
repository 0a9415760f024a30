"""Packages of strangers: one that works, and one that is broken in every way."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STRANGERS = Path(__file__).parent / "third_party"
RECIPE = STRANGERS / "acme-celstack" / "recipes" / "stripes.toml"
# What `celstack plugins --check` says of each plugin of the broken package.
REASONS = {
    "compositor another_name": "'some_other'",
    "dataset not_importable": "No module named 'a_package_that_nobody_has'",
    "encoder abstract": "forward",
    "metric nowhere": "No module named 'broken_celstack.nowhere'",
    "metric wrong_class": "is not a subclass of celstack.Metric",
    "observer quits": "quits: wrong operating system",
    "predictor no_hook": "no hook celstack_predictors",
    "prototype strange_argument": "weather",
    "selector syntax": "SyntaxError",
    "sprite no_such_kind": "an entry is named <kind>-<name>",
    "transform broken-celstack": "an entry is named <kind>-<name>",
    "transform bad_package": "RuntimeError: broken_package is not configured",
    "transform color": "the name is taken by celstack",
    "transform misspelt": "celstack_transfroms",
}


def copied(package, folder):
    """Copy a package's sources, because building leaves traces in them."""
    return shutil.copytree(STRANGERS / package, folder / package)


@pytest.fixture(scope="session")
def acme(outside, tmp_path_factory):
    place = outside("acme")
    place.install(copied("acme-celstack", tmp_path_factory.mktemp("sources")))
    return place


@pytest.fixture(scope="session")
def broken(outside, tmp_path_factory):
    place, sources = (
        outside("broken"),
        copied("broken-celstack", tmp_path_factory.mktemp("sources")),
    )
    # In the tree, this file would stop every tool that reads Python.
    (sources / "src" / "broken_celstack" / "syntax.py").write_text("class Syntax(Selector:\n")
    place.install(sources)
    return place


@pytest.fixture(scope="module")
def acme_run(acme, tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme_run")
    done = acme.run_recipe(str(RECIPE), "--device", "cpu", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.strip()


@pytest.fixture(scope="module")
def checked(broken, tmp_path_factory):
    return broken.celstack("plugins", "--check", cwd=tmp_path_factory.mktemp("checked"))


def test_a_strangers_recipe_runs_and_is_scored(acme_run):
    scores = json.loads((acme_run / "metrics.json").read_text())

    assert set(scores) == {"mse", "ari"}


def test_a_strangers_observer_hears_the_whole_run(acme_run):
    assert (acme_run / "acme.txt").read_text().splitlines() == [
        "started on acme_stripes for 5 steps",
        "stage warming up",
        "step 1 on 5 images",
        "step 2 on 5 images",
        "stage stage 2",
        "step 3 on 2 images",
        "step 4 on 5 images",
        "step 5 on 5 images",
        "scored mse, ari",
        "finished",
    ]


def test_a_strangers_parts_keep_their_promises(acme, tmp_path):
    code = (
        "from celstack.testing import check_dataset, check_observer, check_transform\n"
        "from celstack.registry.catalog import Catalog\n"
        "load = Catalog().load\n"
        "check_transform(load('transform', 'acme_contrast')())\n"
        "check_dataset(load('dataset', 'acme_stripes')(images=9))\n"
        "check_observer(load('observer', 'acme_diary')())\n"
    )

    done = acme.python("-W", "error", "-c", code, cwd=tmp_path)

    assert done.returncode == 0, done.stderr


def test_a_strangers_plugins_are_listed_with_package_and_version(acme, tmp_path):
    listed = acme.celstack("plugins", cwd=tmp_path).stdout

    rows = [line.split() for line in listed.splitlines() if "acme" in line]
    assert rows == [
        ["dataset", "acme_stripes", "acme-celstack", "1.4.2", "installed"],
        ["observer", "acme_diary", "acme-celstack", "1.4.2", "installed"],
        ["transform", "acme_contrast", "acme-celstack", "1.4.2", "installed"],
    ]


def test_a_strangers_options_are_shown(acme, tmp_path):
    shown = acme.celstack("show", "dataset", "acme_stripes", cwd=tmp_path).stdout

    assert "dataset acme_stripes (acme-celstack 1.4.2)" in shown
    assert "side: an integer of at least 4 (default 16)" in shown


def test_a_mistake_with_a_strangers_option_is_located(acme, tmp_path):
    done = acme.celstack("check", str(RECIPE), "--set", "dataset.shade=pink", cwd=tmp_path)

    assert done.returncode == 2
    assert "dataset.shade: must be 'dark' or 'bright'" in done.stderr


def test_the_recipe_cannot_be_used_where_its_package_is_absent(outside, tmp_path):
    done = outside("empty").celstack("check", str(RECIPE), cwd=tmp_path)

    assert done.returncode == 2
    assert "no dataset is called 'acme_stripes'" in done.stderr
    assert "Traceback" not in done.stderr


def test_listing_does_not_import_what_is_broken(broken, tmp_path):
    done = broken.celstack("plugins", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("broken-celstack  0.0.1") == len(REASONS)


@pytest.mark.parametrize(("plugin", "reason"), REASONS.items())
def test_a_check_tells_what_is_wrong_with_each_plugin(checked, plugin, reason):
    lines = [" ".join(line.split()) for line in checked.stdout.splitlines()]
    (line,) = [
        line for line in lines if line.startswith(plugin + " ") and "broken-celstack" in line
    ]

    assert reason in line


def test_a_check_finds_that_all_others_work(checked):
    lines = checked.stdout.splitlines()[1:]

    ours = [line for line in lines if "broken-celstack" not in line]
    assert ours
    assert all(line.endswith("works") for line in ours)


def test_a_check_that_finds_something_ends_with_exit_code_2(checked):
    assert checked.returncode == 2
    assert f"{len(REASONS)} of " in checked.stderr
    assert "Traceback" not in checked.stderr


MEANINGS = """
import json
from celstack.recipe.build import assemble
from celstack.registry.catalog import Catalog
from celstack.errors import RecipeError
from celstack.recipe.load import bundled_names, read_recipe
from celstack.recipe.resolve import resolve

catalog = Catalog()

def meaning(name):
    try:
        resolved = resolve(read_recipe(name), catalog)
        assemble(resolved, catalog)
        return resolved.as_table()
    except RecipeError as error:  # such as a dataset that is not in the kit yet
        return [problem.place for problem in error.problems]

print(json.dumps({name: meaning(name) for name in bundled_names()}))
"""


def test_every_bundled_recipe_means_what_it_meant(broken, tmp_path):
    alone = subprocess.run(
        [sys.executable, "-c", MEANINGS], capture_output=True, text=True, check=True
    )

    beside_the_broken = broken.python("-c", MEANINGS, cwd=tmp_path)

    meanings = json.loads(alone.stdout)
    assert json.loads(beside_the_broken.stdout or "{}") == meanings
    assert isinstance(meanings["smoke.toml"], dict)


def test_a_recipe_that_uses_nothing_broken_is_sound(broken, tmp_path):
    done = broken.celstack("check", "smoke.toml", cwd=tmp_path)

    assert done.returncode == 0, done.stderr


def test_a_recipe_that_uses_nothing_broken_runs(broken, tmp_path):
    changes = ["stages[0].steps=2", "stages[1].steps=2", "dataset.count=64"]
    options = [part for change in changes for part in ("--set", change)]
    options += ["--set", "evaluation.images=8", "--device", "cpu", "--quiet"]

    done = broken.run_recipe("smoke.toml", *options, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / done.stdout.strip() / "metrics.json").is_file()


@pytest.mark.parametrize(
    ("change", "place", "reason"),
    [
        ("dataset.use=not_importable", "dataset", "a_package_that_nobody_has"),
        ("predictor.encoder.use=abstract", "predictor.encoder", "forward"),
        ("transforms.layer[0].use=misspelt", "transforms.layer[0]", "celstack_transfroms"),
        ("transforms.layer[0].use=bad_package", "transforms.layer[0]", "not configured"),
        ("observers[0].use=quits", "observers[0]", "quits: wrong operating system"),
        ("selector.use=syntax", "selector", "SyntaxError"),
    ],
)
def test_using_a_broken_plugin_gives_one_line_with_the_reason(
    broken, tmp_path, change, place, reason
):
    done = broken.run_recipe("smoke.toml", "--set", change, cwd=tmp_path)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"smoke.toml: {place}" in line
    assert "broken-celstack 0.0.1" in line
    assert reason in line
    assert not list(tmp_path.iterdir())

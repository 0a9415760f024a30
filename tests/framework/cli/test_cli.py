"""The commands as a newcomer meets them: what is typed, what is answered."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import version

import pytest

from celstack import cli
from celstack.registry import catalog as catalog_module


def one_clear_line(answer):
    assert answer.code == 2
    assert answer.said == ""
    assert "Traceback" not in answer.complaint
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ")


# Mistakes.


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["smok.toml"],
            "smok.toml: no such recipe, here or among the bundled ones; did you mean",
        ),
        (
            ["smoke", "--set", "extra=1"],
            "smoke: extra: there is no such section (known: dataset",
        ),
        (
            ["smoke", "--set", "selector.sweep=1"],
            "smoke: selector.sweep: greedy takes sweeps, ",
        ),
        (
            ["smoke", "--set", "sprites.count=few"],
            "smoke: sprites.count: must be an integer, not",
        ),
        (
            ["smoke", "--set", "sprites.count=0"],
            "smoke: sprites.count: must be an integer of at",
        ),
        (["smoke", "--seed", "-1"], "smoke: seed: must be an integer of at least 0"),
        (["smoke", "--set", "selector=gredy"], "smoke: selector.use: no selector is called"),
        (
            ["smoke", "--set", "selector=color"],
            "smoke: selector.use: 'color' is a transform, not",
        ),
        (
            ["smoke", "--set", "compositor=ordered", "--set", "compositor.layers"],
            "--set composi",
        ),
        (["smoke", "--set", "stages[9].steps=1"], "--set stages[9]: stages has only 2 items"),
        (["smoke", "--set", "dataset.per_image=3"], "smoke: compositor.layers: 1 cannot hold"),
        (["smoke", "--device", "abacus"], "--device abacus: cannot be used here: "),
    ],
)
def test_a_mistake_is_answered_with_one_clear_line(command, tmp_path, arguments, line):
    answer = command("run-recipe", *arguments, "--out", str(tmp_path / "runs"))

    assert one_clear_line(answer).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed = = 1", "my.toml: not valid TOML: Invalid value (at line 1, column 8)"),
        ("extends = 'my.toml'", "my.toml: extends: a cycle: my.toml -> my.toml"),
        (
            "extends = 'other.toml'",
            "my.toml: extends: there is no 'other.toml', neither beside",
        ),
        (
            "extends = 'smoke'\n[selector]\nsweep = 1",
            "my.toml: selector.sweep: greedy takes sweeps",
        ),
        (
            "extends = 'smoke'\n[compositor]\nuse = 'other'",
            "my.toml: compositor.use: no compos",
        ),
    ],
)
def test_a_mistake_in_a_file_is_answered_with_one_clear_line(
    command, write, tmp_path, monkeypatch, text, line
):
    write(text)
    monkeypatch.chdir(tmp_path)

    answer = command("run-recipe", "my.toml")

    assert one_clear_line(answer).startswith(line)


def test_a_missing_key_is_answered_with_one_clear_line(command, write):
    path = write("extends = 'base.toml'\nsprites = { use = 'pixels' }")
    write("extends = 'smoke'\nsprites = { use = 'other' }", "base.toml")

    answer = command("celstack", "check", path)

    assert one_clear_line(answer) == (
        f"{path}: sprites.count: is missing; it must be an integer of at least 1"
    )


def test_a_broken_plugin_is_answered_with_one_clear_line(command, plugin, monkeypatch):
    entries = [
        *catalog_module.entry_points(group="celstack"),
        plugin("metric-bad", "import no"),
    ]
    monkeypatch.setattr(catalog_module, "entry_points", lambda group: entries)

    answer = command("run-recipe", "smoke", "--set", "metrics=['bad']")

    assert one_clear_line(answer) == (
        "smoke: metrics[0].use: broken plugin: metric-bad (acme 1.0): "
        "ModuleNotFoundError: No module named 'no'"
    )


def test_an_output_folder_that_cannot_be_is_answered_with_one_clear_line(
    command, small, tmp_path
):
    (tmp_path / "file").write_text("")
    inside = str(tmp_path / "file" / "inside")

    answer = command("run-recipe", small, "--out", inside)

    assert one_clear_line(answer) == f"--out {inside}: cannot write there: Not a directory"


def test_several_mistakes_are_in_one_report(command):
    answer = command(
        "run-recipe", "smoke", "--set", "selector.sweep=1", "--set", "sprites.count=0"
    )

    assert (answer.code, answer.complaint.splitlines()) == (
        2,
        [
            "celstack: smoke: 2 problems",
            "  sprites.count: must be an integer of at least 1, not 0",
            "  selector.sweep: greedy takes sweeps, empty_cost; did you mean 'sweeps'?",
        ],
    )


@pytest.mark.parametrize(
    "override",
    [
        "selector.sweep=1",
        "selector=gredy",
        "dataset.pieces=X",
        "dataset.per_image=3",
        "stages=[]",
    ],
)
def test_nothing_is_written_for_a_recipe_with_mistakes(command, small, tmp_path, override):
    out = tmp_path / "runs"

    answer = command("run-recipe", small, "--out", str(out), "--set", override)

    assert answer.code == 2
    assert not out.exists()


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["smoke", "--seed", "x"], ["--what"]])
def test_arguments_that_make_no_sense_exit_with_2(command, arguments):
    assert command("run-recipe", *arguments).code == 2


def test_an_unknown_command_exits_with_2(command):
    assert command("celstack", "plugin").code == 2


# Answers.


@pytest.mark.parametrize("program", ["run-recipe", "celstack"])
def test_help_is_given(command, program):
    answer = command(program, "--help")

    assert answer.code == 0
    assert answer.said.startswith(f"usage: {program}")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_gives_help(command, name):
    answer = command("celstack", name, "--help")

    assert answer.code == 0
    assert answer.said.startswith(f"usage: celstack {name}")


def test_without_a_command_help_is_given(command):
    answer = command("celstack")

    assert answer.code == 0
    assert "new-plugin" in answer.said


def test_the_version_is_that_of_the_package(command):
    assert command("celstack", "--version").said == f"celstack {version('celstack')}\n"


def test_recipes_are_listed_with_their_descriptions(command):
    lines = command("celstack", "recipes").said.splitlines()

    (line,) = [line for line in lines if line.startswith("smoke.toml ")]
    assert line.split(maxsplit=1)[1].startswith("Under a minute")


def test_plugins_are_listed_with_their_owners(command):
    lines = command("celstack", "plugins").said.splitlines()

    assert lines[0].split() == ["KIND", "NAME", "PACKAGE", "VERSION", "STATE"]
    assert ["metric", "mse", "celstack", version("celstack"), "installed"] in [
        line.split() for line in lines
    ]


def test_plugins_of_one_kind_are_listed_alone(command):
    lines = command("celstack", "plugins", "--kind", "selector").said.splitlines()

    assert {line.split()[0] for line in lines[1:]} == {"selector"}


def test_plugins_that_work_are_said_to_when_they_are_checked(command):
    answer = command("celstack", "plugins", "--check", "--kind", "metric")

    assert answer.code == 0
    assert all(line.endswith("works") for line in answer.said.splitlines()[1:])


def test_plugins_that_are_broken_are_said_to_be_when_they_are_checked(
    command, plugin, entry_point, monkeypatch
):
    bad, odd = plugin("metric-bad", "import no"), entry_point("metric_odd", "odd")
    monkeypatch.setattr(catalog_module, "entry_points", lambda group: [bad, odd])

    answer = command("celstack", "plugins", "--check")

    assert answer.code == 2
    assert "broken: ModuleNotFoundError: No module named 'no'" in answer.said
    assert "refused: an entry is named <kind>-<name>" in answer.said
    assert answer.complaint == "celstack: 2 of 2 plugins cannot be used\n"


LAWLESS = """
from celstack import hookimpl
from celstack.testing import PlainSelector, PlainTransform, PlainDataset

class Forgetful(PlainTransform):
    def forward(self, images, params):
        return images.detach()

class Choosy(PlainSelector):
    def __init__(self, taste: str) -> None:
        self.empty_cost = None

class Priced(PlainSelector):
    def __init__(self, empty_cost: float) -> None:
        self.empty_cost = empty_cost
        print("made")

class Clumsy(PlainTransform):
    def forward(self, images, params):
        raise ZeroDivisionError("by zero")

class Elsewhere(PlainDataset):
    def count(self, split):
        raise FileNotFoundError("stars.npz")

@hookimpl
def celstack_transforms():
    return {"forgetful": Forgetful, "clumsy": Clumsy}

@hookimpl
def celstack_selectors():
    return {"choosy": Choosy, "priced": Priced}

@hookimpl
def celstack_datasets():
    return {"elsewhere": Elsewhere}
"""


def test_the_laws_of_plugins_are_checked_on_request(command, plugin, monkeypatch):
    names = ("forgetful", "clumsy", "choosy", "priced", "elsewhere")
    kinds = ("transform", "transform", "selector", "selector", "dataset")
    entries = [plugin(f"{kind}-{n}", LAWLESS) for kind, n in zip(kinds, names, strict=True)]
    monkeypatch.setattr(catalog_module, "entry_points", lambda group: entries)

    answer = command("celstack", "plugins", "--check", "--laws")

    assert answer.code == 2
    assert answer.complaint == "celstack: 2 of 5 plugins cannot be used, or break a law\n"
    states = {line.split()[1]: line.split("  ", 4)[-1] for line in answer.said.splitlines()}
    found = {name: states[name].split("1.0")[-1].strip() for name in names}
    assert found == {
        "forgetful": "breaks a law: Forgetful: gradients reach images and parameters, but "
        "there are none",
        "clumsy": "breaks a law: it fails: ZeroDivisionError: by zero",
        "choosy": "works; laws not checked: it needs values for taste",
        "priced": "keeps the laws",
        "elsewhere": "works; laws not checked: stars.npz",
    }


def test_plugins_of_the_kit_keep_their_laws(command):
    answer = command("celstack", "plugins", "--laws", "--kind", "compositor")

    assert answer.code == 0
    assert all(line.endswith("keeps the laws") for line in answer.said.splitlines()[1:])


def test_a_plugin_is_shown_with_its_documentation_and_options(command):
    said = command("celstack", "show", "prototype", "pixels").said

    assert said.startswith(f"prototype pixels (celstack {version('celstack')})\n\nLearnable")
    assert "\n  count: an integer of at least 1 (required)\n" in said
    assert "\n  size: a list of 2, each an integer of at least 1 (optional)\n" in said
    assert "\n  appearance: a number (default 0.9)\n" in said


def test_an_option_that_is_a_part_is_shown_by_its_kind(command):
    assert (
        "encoder: an encoder (required)"
        in command("celstack", "show", "predictor", "network").said
    )


def test_a_plugin_without_options_is_said_to_have_none(command):
    said = command("celstack", "show", "transform", "identity").said

    assert said.endswith("No options.\n")


def test_showing_a_plugin_that_is_not_there_suggests_another(command):
    answer = command("celstack", "show", "transform", "colour")

    assert "did you mean 'color'?" in one_clear_line(answer)


def test_a_recipe_without_mistakes_is_said_to_have_none(command, small):
    answer = command("celstack", "check", small)

    assert (answer.code, answer.said) == (0, f"{small}: no mistakes found\n")


# Runs.


@pytest.fixture
def quiet_run(command, small, tmp_path):
    """Run the small recipe and return its folder."""

    def run(*arguments):
        answer = command("run-recipe", small, "--quiet", "--out", str(tmp_path), *arguments)
        assert (answer.code, answer.complaint) == (0, "")
        (folder,) = (tmp_path / "my").iterdir()
        assert answer.said == f"{folder}\n"
        return folder

    return run


def test_a_quiet_run_prints_nothing_but_its_folder(quiet_run):
    folder = quiet_run("--device", "cpu")

    assert json.loads((folder / "metrics.json").read_text()).keys() == {"mse"}


def test_the_seed_of_the_command_line_is_that_of_the_run(quiet_run):
    folder = quiet_run("--seed", "7")

    assert tomllib.loads((folder / "resolved.toml").read_text())["seed"] == 7
    assert folder.name.endswith("-seed7")


def test_a_run_ends_by_saying_where_to_look(command, small, tmp_path):
    answer = command("run-recipe", small, "--out", str(tmp_path))

    assert f"Results: {tmp_path}" in answer.said


def test_a_run_that_fails_exits_with_1(command, small, tmp_path):
    answer = command(
        "run-recipe", small, "--out", str(tmp_path), "--set", "training.prototype_rate=1e30"
    )

    assert answer.code == 1
    assert "the loss is" in answer.complaint


@pytest.mark.parametrize("what", ["plugins", "--help", "recipes"])
def test_whoever_reads_the_output_may_stop_reading(what):
    code = "from celstack.cli import celstack; celstack()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()

    complaint = process.stderr.read()

    process.stderr.close()
    assert (process.wait(60), complaint) == (0, "")

"""`celstack new-plugin` writes packages that work, or nothing at all."""

import argparse
import ast
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from celstack.cli.commands import new_plugin
from celstack.errors import CelstackError
from celstack.registry.kinds import KINDS


def write(*arguments):
    parser = argparse.ArgumentParser()
    new_plugin.add_arguments(parser)
    new_plugin.main(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture(scope="module")
def nine(outside, tmp_path_factory):
    """One package of every kind, installed; pip is slow, so all at once."""
    place, folder = outside("nine"), tmp_path_factory.mktemp("sources")
    for kind in KINDS:
        write(f"my-{kind}", "--kind", kind, "--into", folder)
    place.install(*sorted(folder.iterdir()))
    place.sources = folder
    return place


def test_the_generated_tests_of_every_kind_pass(nine):
    options = ["-q", "-p", "no:cacheprovider", "-W", "error", "--import-mode=importlib"]

    done = nine.python("-m", "pytest", *options, str(nine.sources), cwd=nine.sources)

    assert done.returncode == 0, done.stdout
    assert f"{2 * len(KINDS)} passed" in done.stdout


def test_the_packages_are_listed_with_their_versions(nine, tmp_path):
    listed = nine.celstack("plugins", "--kind", "metric", cwd=tmp_path).stdout

    rows = [line.split() for line in listed.splitlines()]
    assert ["metric", "my-metric", "celstack-my-metric", "0.1.0", "installed"] in rows


def test_the_options_of_a_generated_plugin_are_read_without_torch(nine, tmp_path):
    code = (
        "import sys; from celstack.registry.catalog import Catalog;"
        "from celstack.registry.kinds import KINDS;"
        "from celstack.recipe.resolve import signature_of\n"
        "for kind in KINDS: signature_of(Catalog(), kind, f'my-{kind}')\n"
        "print('torch' in sys.modules)"
    )

    assert nine.python("-c", code, cwd=tmp_path).stdout == "False\n"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_template_that_says_what_it_is(kind):
    source = new_plugin.package_files(kind, "thing")["src/celstack_thing.py"]

    assert f"class Thing({KINDS[kind].interface}):" in source
    assert f"def {KINDS[kind].hook}()" in source


@pytest.mark.parametrize("kind", KINDS)
def test_templates_import_only_public_names(kind):
    files = new_plugin.package_files(kind, "thing")
    sources = [ast.parse(text) for path, text in files.items() if path.endswith(".py")]
    imports = [node for tree in sources for node in ast.walk(tree)]

    homes = {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    named = {
        alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names
    }
    ours = {home for home in homes | named if home.partition(".")[0] == "celstack"}
    assert ours <= {"celstack", "celstack.testing"}
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module in ours:
            public = import_module(node.module).__all__
            assert {alias.name for alias in node.names} <= set(public)


def test_the_entry_point_is_named_after_kind_and_name(tmp_path):
    write("soft_shadow", "--kind", "transform", "--into", tmp_path)

    project = tomllib.loads((tmp_path / "soft_shadow" / "pyproject.toml").read_text())

    entries = project["project"]["entry-points"]["celstack"]
    assert entries == {"transform-soft_shadow": "celstack_soft_shadow"}


def test_a_package_has_four_files(tmp_path):
    write("soft-shadow", "--kind", "transform", "--into", tmp_path)

    folder = tmp_path / "soft-shadow"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.*")) == [
        "README.md",
        "pyproject.toml",
        "src/celstack_soft_shadow.py",
        "tests/test_celstack_soft_shadow.py",
    ]


def test_the_command_ends_with_what_to_do_next(tmp_path, capsys):
    write("bloom", "--kind", "transform", "--into", tmp_path)

    *_, install, show, test = capsys.readouterr().out.splitlines()
    assert install == f'  pip install -e "{tmp_path / "bloom"}[dev]"'
    assert show == "  celstack show transform bloom"
    assert test == f'  pytest "{tmp_path / "bloom"}"'


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Bloom",
        "1st",
        "soft shadow",
        "a--b",
        "_soft",
        "soft-",
        "../up",
        "a/b",
        "é",
        "x" * 61,
    ],
)
def test_a_name_that_cannot_be_installed_is_refused(name, tmp_path):
    with pytest.raises(CelstackError, match="is not a valid name"):
        write(name, "--kind", "transform", "--into", tmp_path)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["transform", "batch", "none", "tensor", "path"])
def test_a_name_that_would_hide_what_plugins_use_is_refused(name, tmp_path):
    with pytest.raises(CelstackError, match="is reserved"):
        write(name, "--kind", "transform", "--into", tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_name_that_is_taken_is_refused_by_naming_its_owner(tmp_path):
    with pytest.raises(CelstackError, match=r"'color' exists already, in celstack \d"):
        write("color", "--kind", "transform", "--into", tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_name_may_be_used_for_another_kind(tmp_path):
    write("color", "--kind", "metric", "--into", tmp_path)

    assert (tmp_path / "color").is_dir()


def test_a_module_that_exists_is_not_hidden(tmp_path):
    with pytest.raises(CelstackError, match="a module celstack_recipes exists already"):
        write("recipes", "--kind", "metric", "--into", tmp_path)


def test_an_unknown_kind_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(CelstackError, match="'transfrom'; did you mean 'transform'"):
        write("bloom", "--kind", "transfrom", "--into", tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "bloom").mkdir()

    with pytest.raises(CelstackError, match="exists already"):
        write("bloom", "--kind", "transform", "--into", tmp_path)

    assert not list((tmp_path / "bloom").iterdir())


def test_a_place_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(CelstackError, match=r"--into .*nowhere: no such folder"):
        write("bloom", "--kind", "transform", "--into", tmp_path / "nowhere")


def test_a_failure_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    write_text = Path.write_text

    def fail_at_the_test(path, *args, **kwargs):
        if path.name.startswith("test_"):
            raise OSError(28, "No space left on device")
        return write_text(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", fail_at_the_test)

    with pytest.raises(CelstackError, match="cannot write there: No space left on device"):
        write("bloom", "--kind", "transform", "--into", tmp_path)

    assert not list(tmp_path.iterdir())


def test_a_mistake_is_one_line_and_exit_code_2(outside, tmp_path):
    done = outside("empty").celstack("new-plugin", "bloom", "--kind", "brush", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("celstack: --kind: no kind is called 'brush'")
    assert len(done.stderr.splitlines()) == 1


def test_it_does_not_import_torch(outside, tmp_path):
    code = (
        "import atexit, sys; from celstack.cli import celstack;"
        "atexit.register(lambda: print('torch' in sys.modules)); celstack()"
    )

    done = outside("empty").python(
        "-c", code, "new-plugin", "bloom", "--kind", "encoder", cwd=tmp_path
    )

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "False"

"""The distribution holds what the tree holds."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_of_the_tree_is_listed():
    roots = PROJECT["tool"]["setuptools"]["package-dir"]
    found = set()
    for name, root in roots.items():
        folders = {path.parent.relative_to(ROOT / root) for path in (ROOT / root).rglob("*.py")}
        found |= {".".join((name, *folder.parts)) for folder in folders}

    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_file_that_is_not_python_is_in_the_wheel():
    data = PROJECT["tool"]["setuptools"]["package-data"]
    for name, root in PROJECT["tool"]["setuptools"]["package-dir"].items():
        folder = ROOT / root
        listed = {path for pattern in data[name] for path in folder.glob(pattern)}
        found = {
            path
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
        }

        assert found == listed


def test_every_plugin_file_has_its_entry_point():
    kit = ROOT / "plugins"
    files = [path for path in kit.rglob("*.py") if "@hookimpl" in path.read_text()]
    names = [path.relative_to(kit).with_suffix("").parts for path in files]
    plugins = {".".join(name).removesuffix(".__init__") for name in names}

    assert plugins == set(PROJECT["project"]["entry-points"]["celstack"].values())


@pytest.mark.parametrize(
    ("entry", "module"), PROJECT["project"]["entry-points"]["celstack"].items()
)
def test_an_entry_is_named_after_its_kind_and_its_file(entry, module):
    _, folder, name = module.split(".")

    assert entry == f"{folder.removesuffix('s')}-{name}"


def test_torch_has_lower_bounds_only():
    torches = [d for d in PROJECT["project"]["dependencies"] if d.startswith("torch")]

    assert len(torches) == 2
    assert all(">=" in d and "<" not in d and "==" not in d for d in torches)

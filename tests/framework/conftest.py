"""What tests of the core share: a small recipe, the installed catalog, commands, plugins."""

import sys
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from celstack import cli
from celstack.catalog import Catalog

SMALL = """\
dataset = { use = "tetrominoes", count = 64, test_count = 16, per_image = 1 }
sprites = { use = "pixels", count = 2, size = [24, 24] }
compositor = { use = "ordered", layers = 1 }
selector = "greedy"
predictor = { use = "network", encoder = "strided" }
transforms.layer = ["color", "position"]
stages = [{ steps = 2 }]
metrics = ["mse"]
evaluation.images = 16
"""


@pytest.fixture(scope="session")
def catalog():
    """What is installed."""
    return Catalog()


@pytest.fixture
def small(write):
    """The path of a recipe without mistakes that runs in a moment."""
    return write(SMALL)


@pytest.fixture
def write(tmp_path):
    """Write a recipe and return its path."""

    def write_text(text, name="my.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_text


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command in this process and return its exit code and what it printed."""

    def run(program, *arguments):
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        entry = {"run-recipe": cli.run_recipe, "celstack": cli.celstack}[program]
        with pytest.raises(SystemExit) as stopped:
            entry()
        captured = capsys.readouterr()
        return SimpleNamespace(
            code=stopped.value.code, said=captured.out, complaint=captured.err
        )

    return run


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Write a plugin module of some package and return its entry point."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def make(name, source, package="acme", version="1.0", module=None):
        # Every test its own module, or Python would remember that of another.
        module = module or f"{tmp_path.name}_{name}_{package}".replace("-", "_")
        Path(folder, f"{module}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        return entry_point(name, module, package, version)

    return make


class FakeDistribution(Distribution):
    """A package that is not installed."""

    def __init__(self, name, version):
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename):
        return self.text if filename == "METADATA" else None

    def locate_file(self, path):
        raise NotImplementedError


def entry_point(name, value, package="acme", version="1.0"):
    """Make an entry point as if a package had been installed."""
    entry = EntryPoint(name, value, "celstack")
    vars(entry).update(dist=FakeDistribution(package, version))
    return entry


@pytest.fixture(name="entry_point")
def entry_point_fixture():
    """Give tests the function of this name."""
    return entry_point

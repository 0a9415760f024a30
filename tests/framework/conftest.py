"""What tests of the core share: a recipe, the catalog, commands, plugins, server, browser."""

import json
import os
import shutil
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest
import tomli_w

from celstack import cli
from celstack.files import to_json
from celstack.registry.catalog import Catalog

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
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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


class Published:
    """A file on a server, and how the server behaves with it."""

    def __init__(self, content=b"", **behaviour):
        self.content = content
        self.etag, self.modified, self.headers = '"1"', "", {}
        self.knows_ranges = self.keeps_condition = self.says_length = True
        self.location, self.statuses, self.cuts, self.stalls = "", [], [], None
        vars(self).update(behaviour)


class Handler(BaseHTTPRequestHandler):
    """Answers as the published file of the path says."""

    def do_GET(self):
        asked = {"path": self.path, **self.headers}
        self.server.asked.append(asked)
        file = self.server.files.get(self.path)
        if file is None or file.statuses:
            self.send_error(404 if file is None else file.statuses.pop(0))
        elif file.location:
            self.send_response(302)
            self.send_header("Location", file.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.answer(file, asked.get("Range", ""), asked.get("If-Range", ""))

    def answer(self, file, ranged, condition):
        kept = condition in ("", file.etag, file.modified) or not file.keeps_condition
        start = 0
        if ranged and file.knows_ranges and kept:
            start = int(ranged.removeprefix("bytes=").removesuffix("-"))
            if start >= len(file.content):
                self.send_error(416)
                return
            self.send_response(206)
            last, total = len(file.content) - 1, len(file.content)
            self.send_header("Content-Range", f"bytes {start}-{last}/{total}")
        else:
            self.send_response(200)
        said = {"ETag": file.etag, "Last-Modified": file.modified, **file.headers}
        if file.says_length:
            said["Content-Length"] = str(len(file.content) - start)
        for name, value in said.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if file.stalls is not None:
            self.wfile.write(file.content[start : file.stalls])
            self.server.go_on.wait()
            return
        cut = file.cuts.pop(0) if file.cuts else None
        self.wfile.write(file.content[start:][:cut])

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch):
    """A web server on this machine: ``files`` by path; ``asked`` is what was asked.

    A file that ``stalls`` after so many bytes does so until ``go_on`` is set.
    """
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.files, running.asked, running.published = {}, [], Published
        running.go_on = Event()
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def log_of():
    """Read what a run logged, without when."""

    def read(folder):
        lines = map(json.loads, (folder / "log.jsonl").read_text("utf-8").splitlines())
        return [{key: line[key] for key in line if key != "time"} for line in lines]

    return read


@pytest.fixture(scope="session")
def small_run(tmp_path_factory, catalog):
    """The folder of a finished run of the small recipe; to be read and not changed."""
    from celstack.recipe.build import assemble
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.runs.directory import RunDirectory
    from celstack.training.loop import run

    base = tmp_path_factory.mktemp("finished")
    (base / "small.toml").write_text(SMALL, encoding="utf-8")
    overrides = ["metrics=['mse', 'ari']", "selector.empty_cost=0.001"]
    resolved = resolve(read_recipe(str(base / "small.toml"), overrides), catalog)
    directory = RunDirectory.create(base, "small", seed=0)
    directory.save_recipe(resolved)
    run(assemble(resolved, catalog), directory)
    return directory.folder


@pytest.fixture
def copied_run(small_run, tmp_path):
    """A finished run that may be spoilt."""
    return shutil.copytree(small_run, tmp_path / "runs" / "small" / small_run.name)


@pytest.fixture
def fake_run(tmp_path):
    """Write what a finished run leaves, as far as tables read it, and return its folder."""

    def make(seed=0, name="mine", loss=0.5, metrics=None, percent=("ari",), files=(), **recipe):
        folder = tmp_path / "runs" / name / f"seed{seed}-{len(list(tmp_path.rglob('seed*')))}"
        folder.mkdir(parents=True)
        table = {
            "seed": seed,
            "dataset": {"use": "shapes"},
            "evaluation": {"split": "test", "images": 320},
            **recipe,
        }
        metrics = metrics or {"ari": 0.5}
        about = {"split": "test", "images": 64, "percent": list(percent), "files": list(files)}
        (folder / "resolved.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
        (folder / "metrics.json").write_text(to_json(metrics))
        (folder / "evaluation.json").write_text(json.dumps(about))
        if loss is not None:
            step = {"step": 1, "stage": "only", "reconstruction": loss, "loss": 9.0}
            (folder / "log.jsonl").write_text(json.dumps(step) + "\n")
        return folder

    return make


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window: one for all tests."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "there is no chromium here (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=OPTIONS)
        yield running
        running.close()

"""What several tests need: a place outside, with packages that pip put there."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Shells start what runs in the background deaf to Ctrl-C, and so is what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

ODD = ("PIP_", "PYTEST", "PYTHON", "COV")


class Outside:
    """Processes that find Celstack and the packages of one folder, and nothing of ours."""

    def __init__(self, packages: Path) -> None:
        self.packages = packages
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ODD)}
        # Tiny tensors are slower on many threads, and the machine may be shared.
        self.environment = {**kept, "PYTHONPATH": str(packages), "OMP_NUM_THREADS": "1"}

    def install(self, *sources: Path) -> None:
        """Install packages with pip, without an index and without what they depend on."""
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--no-input", "--quiet"]
        command = ["-m", "pip", "install", *options, "--target", str(self.packages)]
        done = self.python(*command, *map(str, sources), cwd=self.packages.parent)
        assert done.returncode == 0, done.stdout + done.stderr

    def python(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Python in a folder."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )

    def celstack(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the command `celstack`."""
        code = "from celstack.cli import celstack; celstack()"
        return self.python("-c", code, *arguments, cwd=cwd)

    def run_recipe(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the command `run-recipe`."""
        code = "from celstack.cli import run_recipe; run_recipe()"
        return self.python("-c", code, *arguments, cwd=cwd)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep what datasets make out of the user's cache, and forget it after the session."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield
        shutil.rmtree(cache, ignore_errors=True)


@pytest.fixture(scope="session")
def outside(tmp_path_factory):
    """Return a maker of places outside, each with its own packages."""
    return lambda name: Outside(tmp_path_factory.mktemp(name) / "packages")

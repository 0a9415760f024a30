"""The plain network really learns, from blobs to clear sprites."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_three_shapes_are_found_placed_and_told_apart(tmp_path):
    # In a process of its own, where shapes are not checked at every call.
    program = "from celstack.cli import run_recipe; run_recipe()"
    command = [sys.executable, "-c", program, "pieces.toml", "--out", str(tmp_path), "--quiet"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    scores = json.loads((folder / "metrics.json").read_text())
    assert scores["ari"] > 0.9
    assert len(list((folder / "sprites").glob("*.png"))) == 3

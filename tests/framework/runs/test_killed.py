"""Kill -9 at any moment costs a run nothing but time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 30
STEPS = 40
RECIPE = f"""\
dataset = {{ use = "tetrominoes", count = 30, test_count = 4, per_image = 1 }}
sprites = {{ use = "pixels", count = 3, size = [24, 24] }}
compositor = {{ use = "ordered", layers = 1 }}
selector = "greedy"
predictor = {{ use = "network", encoder = "strided" }}
transforms.layer = ["color", "position"]
metrics = ["mse"]
evaluation.images = 4
training = {{ batch_size = 4, reassign_every = 7, checkpoint_every = 3 }}
stages = [{{ steps = 15, freeze_sprites = true }}, {{ steps = {STEPS - 15} }}]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked there")
def test_a_run_that_is_killed_and_resumed_ends_as_if_nothing_had_happened(tmp_path):
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(RECIPE)
    killer = Path(__file__).with_name("killer.py")

    done = subprocess.run(
        [sys.executable, str(killer), str(recipe), str(tmp_path / "runs"), str(KILLS), "0"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )

    assert done.returncode == 0, done.stderr
    story = json.loads(done.stdout)
    assert len(story) == KILLS
    assert [one for one in story if not one["same"]] == []
    # The moments were all over the run.
    assert min(one["step"] for one in story) < STEPS // 3
    assert max(one["step"] for one in story) > 2 * STEPS // 3

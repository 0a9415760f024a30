"""Whether memory and file handles stay flat while recipes are run for a long time.

    python tests/benchmarks/soak.py [MINUTES]

One process runs a small recipe again and again for so many minutes (30): training, with and
without processes that load images, checkpoints, curves, the report while the run goes on and
at its end, evaluation; then it goes on from a checkpoint, opens the run from its folder and
writes its page again. After each round, memory (resident, of this process and of all that it
started) and open handles are noted. Printed are the slopes over the last three quarters of the
time, with their standard errors. Exits with 1 if, by more than two errors, memory grows by
more than 20 MiB an hour, or handles by more than one. Linux alone tells such things of itself.
"""

import gc
import os
import sys
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import torch

from celstack import Observer, hookimpl
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.report.run_page import make_page
from celstack.runs.directory import RunDirectory
from celstack.runs.open import open_run
from celstack.training.evaluate import score
from celstack.training.loop import run

RECIPE = """\
dataset = { use = "tetrominoes", count = 96, test_count = 16, per_image = 1, side = 24 }
sprites = { use = "pixels", count = 3, size = [12, 12] }
compositor = { use = "ordered", layers = 1 }
selector = "greedy"
predictor = { use = "network", encoder = "strided" }
transforms.layer = ["color", "position"]
metrics = ["mse", "ari"]
observers = ["tensorboard", { use = "report", every = 5 }]
evaluation.images = 16
training = { batch_size = 16, checkpoint_every = 10, reassign_every = 25 }
"""
STEPS = 120
MOST_MEMORY, MOST_HANDLES = 20.0, 1.0
"""Slopes an hour, in MiB and in handles, that are still flat."""


class Stopper(Observer):
    """Ends a run in its middle, as Ctrl-C does."""

    @hookimpl
    def celstack_step_finished(self, step):
        if step == STEPS // 2:
            raise KeyboardInterrupt


def one_round(folder, catalog, workers):
    """Learn half of the steps, go on with the other half, and look at the result again."""
    recipe = folder / "soak.toml"
    changes = [f"training.workers={workers}", f"stages=[{{steps={STEPS}}}]"]
    resolved = resolve(read_recipe(str(recipe), changes), catalog)
    directory = RunDirectory.create(folder / "runs", "soak", 0)
    directory.save_recipe(resolved)
    assembly = assemble(resolved, catalog)
    assembly.observers.append(Stopper())
    try:
        run(assembly, directory)
    except KeyboardInterrupt:
        assembly.observers.pop()
    run(assembly, directory, resume=True)
    opened = open_run(directory.folder)
    dataset, metrics = opened.assembly.dataset, opened.assembly.metrics
    score(opened.decomposer, dataset, metrics, opened.assembly.evaluation)
    directory.save_page(make_page(directory.folder, opened.assembly, opened.decomposer).text)
    for path in sorted(directory.folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    directory.folder.rmdir()


def resident(process):
    """Return the resident memory of a process in MiB, with all that it has started."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    own = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    tasks = Path(f"/proc/{process}/task").iterdir()
    children = [c for task in tasks for c in (task / "children").read_text().split()]
    return own + sum(resident(child) for child in children)


def slope(hours, values):
    """Return the slope of a straight line through values, and its standard error."""
    hours, values = np.array(hours), np.array(values, float)
    centred = hours - hours.mean()
    spread = (centred**2).sum()
    steep = (centred * values).sum() / spread
    left = values - values.mean() - steep * centred
    return steep, np.sqrt((left**2).sum() / max(1, len(hours) - 2) / spread)


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    torch.set_num_threads(1)
    catalog = Catalog()
    begin, notes = time.monotonic(), []
    # Disks are not looked at here, and a slow one would leave time for few rounds.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name, redirect_stderr(sys.stdout):
        folder = Path(name)
        (folder / "soak.toml").write_text(RECIPE, encoding="utf-8")
        while (passed := time.monotonic() - begin) < 60 * minutes:
            one_round(folder, catalog, workers=2 if len(notes) % 2 else 0)
            gc.collect()
            hours = (time.monotonic() - begin) / 3600
            handles = len(list(Path("/proc/self/fd").iterdir()))
            notes.append((hours, resident(os.getpid()), handles))
            if len(notes) % 10 == 1:
                print(
                    f"{passed / 60:6.1f} min  {notes[-1][1]:8.1f} MiB  {handles:4d} handles",
                    flush=True,
                )
    late = [note for note in notes if note[0] > notes[-1][0] / 4]
    hours, sizes, handles = zip(*late, strict=True)
    grows, more = slope(hours, sizes), slope(hours, handles)
    print(f"{len(notes)} rounds of {STEPS} steps in {60 * notes[-1][0]:.1f} minutes")
    print(f"memory  {grows[0]:+8.2f} ± {grows[1]:.2f} MiB/hour, last {sizes[-1]:.1f} MiB")
    print(f"handles {more[0]:+8.2f} ± {more[1]:.2f} an hour, last {handles[-1]}")
    steep = [grows[0] - 2 * grows[1] > MOST_MEMORY, more[0] - 2 * more[1] > MOST_HANDLES]
    sys.exit(1 if any(steep) else 0)


if __name__ == "__main__":
    main()

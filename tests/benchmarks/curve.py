"""Scores against steps: run a recipe and evaluate it along the way.

    python tests/benchmarks/curve.py RECIPE [--every 1000] [--images N] [--minutes M]
        [--set PATH=VALUE ...] [--seed N] [--out DIR] [--resume RUN]

The run is an ordinary one, with a folder that all commands open. Besides, ``curve.jsonl`` in
that folder gets a line every so many steps: step, seconds of training, and all scores on
the recipe's own evaluation split (on its first ``--images``, if given). With ``--minutes``
the run stops there, as by Ctrl-C, and goes on with ``--resume``.
"""

import argparse
import json
import time
from copy import deepcopy
from pathlib import Path

import attrs

from celstack import Observer, hookimpl
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.runs.directory import RunDirectory
from celstack.training.evaluate import score
from celstack.training.loop import run


class Curve(Observer):
    """Evaluates every so many steps, and stops the run when its time is up."""

    def __init__(self, assembly, every, images, minutes):
        self.dataset, self.metrics = assembly.dataset, deepcopy(assembly.metrics)
        asked = images or assembly.evaluation.images
        self.evaluation = attrs.evolve(assembly.evaluation, images=asked)
        self.every, self.limit = every, 60 * minutes if minutes else None
        self.seconds, self.judging = 0.0, 0.0

    @hookimpl
    def celstack_run_started(self, decomposer, folder, steps):
        self.decomposer, self.path, self.steps = decomposer, folder / "curve.jsonl", steps
        if self.path.exists():
            self.seconds = json.loads(self.path.read_text().splitlines()[-1])["seconds"]
        self.began = time.monotonic() - self.seconds
        self.session = time.monotonic()

    @hookimpl
    def celstack_step_finished(self, step, loss):
        if step % self.every and step != self.steps:
            return
        seconds = time.monotonic() - self.began - self.judging
        begin = time.monotonic()
        scores = score(self.decomposer, self.dataset, self.metrics, self.evaluation)
        self.judging += time.monotonic() - begin
        scores = {name: round(value, 5) for name, value in scores.items()}
        line = {"step": step, "seconds": round(seconds, 1), "loss": float(loss.total), **scores}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)

    @hookimpl
    def celstack_checkpoint_saved(self, step):
        if self.limit and time.monotonic() - self.session > self.limit:
            raise KeyboardInterrupt(f"{self.limit / 60:.0f} minutes are over at step {step}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--images", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--resume", type=Path)
    asked = parser.parse_args()
    catalog = Catalog()
    source = asked.resume / "resolved.toml" if asked.resume else asked.recipe
    overrides = [] if asked.resume else [*asked.set, f"seed={asked.seed}"]
    resolved = resolve(read_recipe(str(source), overrides), catalog)
    assembly = assemble(resolved, catalog)
    assembly.observers.append(Curve(assembly, asked.every, asked.images, asked.minutes))
    directory = (
        RunDirectory(asked.resume)
        if asked.resume
        else RunDirectory.create(asked.out, resolved.name, assembly.seed)
    )
    if not asked.resume:
        directory.save_recipe(resolved)
    print(directory.folder, flush=True)
    try:
        print(run(assembly, directory, resume=bool(asked.resume)).scores)
    except KeyboardInterrupt as stopped:
        print(f"{stopped}; goes on with --resume {directory.folder}")


if __name__ == "__main__":
    main()

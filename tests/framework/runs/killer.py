"""Kill runs at random moments and resume them; say what became of each, as JSON.

    python killer.py RECIPE FOLDER KILLS SEED

Everything is imported once, in this process; runs are real processes that it forks, with
real files, and end by SIGKILL.
"""

import json
import os
import random
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

import torch

from celstack import cli
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

import_module("celstack.training.loop")
import_module("celstack.evaluation.visualize")
LIMIT = 60.0


def warm_up():
    """Let torch import what it imports when an optimiser first steps: seconds of every run."""
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    torch.optim.Adam([weight], fused=True).step()


def launch(*arguments):
    """Fork `run-recipe` with these arguments; return the id of the process."""
    process = os.fork()
    if process:
        return process
    try:
        sys.argv = ["run-recipe", *map(str, arguments), "--quiet", "--device", "cpu"]
        sys.stdout = sys.stderr
        cli.run_recipe()
    except SystemExit as stopped:
        os._exit(int(stopped.code or 0))
    os._exit(99)


def wait(process):
    """Wait for the end of a process; return what it was."""
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def begun(base, process):
    """Wait until a run has a folder with a recipe in it, and return the folder."""
    end = time.monotonic() + LIMIT
    while not (found := list(base.glob("*/*/resolved.toml"))):
        assert time.monotonic() < end, f"run {process} does not begin"
        time.sleep(0.001)
    return found[0].parent


def left(folder):
    """Return all that a finished run has learned and noted."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    # Where lines say when they were written, that is not what was learned.
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    log = [{key: line[key] for key in line if key != "time"} for line in lines]
    # Its length depends on such times.
    state.pop("log")
    return state, log, json.loads((folder / "metrics.json").read_text())


def equal(one, other):
    """Tell whether two nests of tensors and values are the same to the last bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return torch.equal(one, other) if torch.is_tensor(one) else one == other


def saved_step(folder):
    """Return the step that a run would go on from."""
    path = folder / "checkpoint.pt"
    return torch.load(path, weights_only=True)["step"] if path.exists() else 0


def main(recipe, base, kills):
    """Run once in peace, to know what is right and how long it takes; then kill."""
    warm_up()
    catalog = Catalog()
    assembly = assemble(resolve(read_recipe(recipe), catalog), catalog)
    for split in assembly.dataset.splits:
        assembly.dataset.count(split)  # so that its images are made once
    process = launch(recipe, "--out", base / "whole")
    whole = begun(base / "whole", process)
    start = time.monotonic()
    assert wait(process) == 0
    seconds = time.monotonic() - start
    expected = left(whole)
    story = []
    while len(story) < kills:
        out = base / f"{len(list(base.iterdir()))}"
        process = launch(recipe, "--out", out)
        folder = begun(out, process)
        time.sleep(random.uniform(0.0, seconds))
        os.kill(process, signal.SIGKILL)
        if wait(process) != -signal.SIGKILL:
            continue  # it was finished before
        step = saved_step(folder)
        code = wait(launch("--resume", folder))
        same = code == 0 and equal(left(folder), expected)
        story.append({"step": step, "code": code, "same": same, "folder": str(folder)})
    print(json.dumps(story))


if __name__ == "__main__":
    random.seed(int(sys.argv[4]))
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

"""What is killed: single runs, runs of several seeds, sweeps, and datasets being made."""

import json
import os
import signal
import time
import tomllib
from contextlib import suppress
from importlib.util import find_spec

from forked import KILLED, Fault, finish, is_alive, others, start, strike, until, wait
from leftovers import difference, left_by_run, left_in_cache
from recipes import DATA, RECIPES
from single_runs import QUIET, Evaluations, Reports, Runs


class Seeds(Runs):
    """`--seeds 2` is killed once; its runs are resumed, and what was not begun is started."""

    seeds = (0, 1)

    def __init__(self, name, folder):
        super().__init__(name, folder)
        out = folder / "seeds"
        began = os.times().elapsed
        finish("run_recipe", [self.recipe, "--seeds", 2, "--out", out, *QUIET], self.log)
        self.seconds = os.times().elapsed - began
        self.expected = {seed_of(run): left_by_run(run) for run in self.runs(out)}

    def trial(self, random):
        self.number += 1
        out = self.folder / f"{self.number}"
        arguments = [self.recipe, "--seeds", 2, "--out", out, *QUIET]
        process = start("run_recipe", arguments, self.log)
        until(lambda: self.runs(out), process)
        kills = int(strike(process, random, self.seconds))
        for run in self.runs(out):
            finish("run_recipe", ["--resume", run, *QUIET], self.log)
        missing = {*self.seeds} - {seed_of(run) for run in self.runs(out)}
        for seed in missing:
            finish("run_recipe", [self.recipe, "--seed", seed, "--out", out, *QUIET], self.log)
        for run in self.runs(out):
            if text := difference(left_by_run(run), self.expected[seed_of(run)]):
                raise Fault(f"{run}: not the same in {text}")
        return kills


def seed_of(run):
    return tomllib.loads((run / "resolved.toml").read_text("utf-8"))["seed"]


class Sweeps(Runs):
    """A sweep, one of its runs, or all of them are killed; the same command goes on."""

    def __init__(self, name, folder):
        super().__init__(name, folder)
        began = os.times().elapsed
        self.sweep(folder / "swept")
        self.seconds = os.times().elapsed - began
        self.expected = self.left(folder / "swept")

    def arguments(self, out):
        grid = ["--grid", "sprites.count=2,3", "--jobs", "2", "--device", "cpu"]
        return ["sweep", self.recipe, *grid, "--out", out]

    def sweep(self, out):
        finish("celstack", self.arguments(out), self.log)

    def left(self, out):
        swept = json.loads((out / "sweep.json").read_text("utf-8"))
        runs = {tuple(one["options"].items()): out / one["folder"] for one in swept["runs"]}
        return {"failed": swept["failed"]} | {k: left_by_run(run) for k, run in runs.items()}

    def trial(self, random):
        self.number += 1
        out = self.folder / f"{self.number}"
        process = start("celstack", self.arguments(out), self.log)
        until(lambda: [*out.glob("*/*/resolved.toml")], process)
        whom = random.choice(("sweep", "run", "all"))
        kills = self.strike(process, whom, out, random)
        self.sweep(out)
        if text := difference(self.left(out), self.expected):
            raise Fault(f"{out}: not the same in {text}")
        return kills

    def strike(self, process, whom, out, random):
        if whom == "sweep":
            return int(strike(process, random, self.seconds))
        until(lambda: others(str(out)), process)
        time.sleep(random.uniform(0.0, self.seconds))
        runs = others(str(out))
        for one in runs[:1] if whom == "run" else runs:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        if whom == "all" and is_alive(process):
            os.kill(process, signal.SIGKILL)
        # A sweep whose run was killed says so, and exits with 1.
        if wait(process) not in KILLED | {0, 1}:
            raise Fault("the sweep ends otherwise")
        return int(bool(runs))


class Images:
    """A command that makes the images of a dataset is killed; the next one makes them."""

    datasets = (
        'use = "tetrominoes", count = 3000, test_count = 2',
        'use = "multi_dsprites", count = 400, test_count = 2',
    )
    rendered = 'use = "clevr6", count = 2, test_count = 1, side = 16, samples = 1'

    def __init__(self, name, folder):
        folder.mkdir()
        self.folder, self.number, self.log = folder, 0, folder / "log.txt"
        datasets = [*self.datasets, *([self.rendered] if find_spec("mitsuba") else [])]
        self.known = []
        for number, dataset in enumerate(datasets):
            recipe = folder / f"{number}.toml"
            text = RECIPES["network"].replace(DATA, f"dataset = {{ {dataset} }}\n")
            recipe.write_text(text.replace("layers = 1", "layers = 8"))
            cache = folder / f"whole{number}"
            began = os.times().elapsed
            self.make(recipe, cache)
            self.known.append((recipe, os.times().elapsed - began, left_in_cache(cache)))

    def arguments(self, recipe, cache):
        options = ["--images", 1, "--out", self.folder / "look.png"]
        return ["look", recipe, *options], self.log, {"XDG_CACHE_HOME": str(cache)}

    def make(self, recipe, cache):
        finish("celstack", *self.arguments(recipe, cache))

    def trial(self, random):
        self.number += 1
        recipe, seconds, expected = random.choice(self.known)
        cache = self.folder / f"{self.number}"
        kills = 0
        for _ in range(random.randint(1, 2)):
            process = start("celstack", *self.arguments(recipe, cache))
            kills += strike(process, random, seconds)
        self.make(recipe, cache)
        if text := difference(left_in_cache(cache), expected):
            raise Fault(f"{cache}: not the same in {text}")
        return kills


SCENARIOS = {
    **dict.fromkeys(("network", "matching", "fitting", "handover"), Runs),
    "evaluation": Evaluations,
    "report": Reports,
    "seeds": Seeds,
    "sweep": Sweeps,
    "data": Images,
}

"""What is killed: runs of every kind, sweeps, seeds, pages, and datasets being made."""

import json
import os
import signal
import time
import tomllib
from contextlib import suppress
from importlib.util import find_spec

from forked import (
    KILLED,
    Fault,
    finish,
    is_alive,
    others,
    start,
    strike,
    until,
    wait,
)
from leftovers import difference, left_by_run, left_in_cache

from celstack_kit.observers import report

DATA = (
    'dataset = { use = "tetrominoes", count = 24, test_count = 4, per_image = 1, side = 24 }\n'
)
SPRITES = 'sprites = { use = "pixels", count = 3, size = [12, 12], jitter = 0.05 }\n'
NETWORK = 'predictor = { use = "network", encoder = { use = "strided", width = 4 } }\n'
PLACED = (
    'compositor = { use = "ordered", layers = 1 }\ntransforms.layer = ["color", "position"]\n'
)
JUDGED = 'metrics = ["mse", "ari"]\nevaluation = { images = 4, batch_size = 2 }\n'
SAVED = "training = { batch_size = 4, reassign_every = 7, checkpoint_every = 3 }\n"
COMMON = DATA + SPRITES + PLACED + JUDGED + SAVED
GREEDY = COMMON + NETWORK + 'selector = "greedy"\n'
RECIPES = {
    "network": GREEDY + "stages = [{ steps = 10, freeze_sprites = true }, { steps = 15 }]\n",
    "matching": COMMON
    + 'selector = { use = "matching", empty_cost = 1e-4, refine = 1 }\n'
    + 'stages = [{ steps = 8 }, { steps = 8, transforms = ["position"] }]\n',
    "fitting": COMMON.replace('"position"', '"affine"')
    + 'selector = { use = "fitting", steps = 2 }\nstages = [{ steps = 12 }]\n',
    # The last stage has a selector of its own, with which the run is evaluated.
    "handover": GREEDY
    + 'stages = [{ steps = 6, selector = "matching" }, { steps = 6, teacher = "matching" }, '
    + '{ steps = 4, selector = { use = "greedy", empty_cost = 0.01 } }]\n',
    "evaluation": GREEDY.replace("test_count = 4", "test_count = 16").replace(
        "images = 4, batch_size = 2", "images = 16, batch_size = 1"
    )
    + 'stages = [{ steps = 4 }, { steps = 2, selector = "matching" }]\n',
    "report": GREEDY + 'observers = ["report"]\nstages = [{ steps = 4 }]\n',
    "seeds": GREEDY + "stages = [{ steps = 10 }]\n",
    "sweep": GREEDY + "stages = [{ steps = 30 }]\n",
}
QUIET = ["--quiet", "--device", "cpu"]


class Runs:
    """A run is killed up to three times, also while it goes on, and then resumed to its end."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        folder.mkdir()
        self.recipe = folder / "tiny.toml"
        self.recipe.write_text(RECIPES[name])
        self.log = folder / "log.txt"
        self.number = 0
        out = self.folder / "whole"
        # Twice: what is compiled or made for the first run takes time that others do not.
        for part in ("first", "second"):
            process = self.begin(out / part)
            run = self.only_run(out / part, process)
            began = os.times().elapsed
            if wait(process):
                raise Fault("fails when it is left alone")
            self.seconds = os.times().elapsed - began
        self.expected = left_by_run(run)

    def begin(self, out):
        arguments = [self.recipe, "--out", out, *QUIET]
        return start("run_recipe", arguments, self.log)

    def resume(self, run):
        return start("run_recipe", ["--resume", run, *QUIET], self.log)

    def only_run(self, out, process):
        found = until(lambda: self.runs(out), process)
        if not found:
            raise Fault(f"does not begin: exit code {wait(process)}")
        return found[0]

    @staticmethod
    def runs(out):
        return [path.parent for path in out.glob("*/*/resolved.toml")]

    def trial(self, random):
        """Return how many kills hit something; raise Fault if the end is another one."""
        self.number += 1
        out = self.folder / f"{self.number}"
        process = self.begin(out)
        run = self.only_run(out, process)
        kills = 0
        for _ in range(random.randint(1, 3)):
            self.aim(run, process, random)
            if not strike(process, random, self.window):
                break
            kills += 1
            process = self.resume(run)
        else:
            wait(process)
        finish("run_recipe", ["--resume", run, *QUIET], self.log)
        self.compare(run)
        return kills

    @property
    def window(self):
        return self.seconds

    def aim(self, run, process, random):
        """Wait for the part of a run that is to be hit; by default, any."""

    def compare(self, run):
        if text := difference(left_by_run(run), self.expected):
            raise Fault(f"{run}: not the same in {text}")


class Evaluations(Runs):
    """Killed while they are evaluated, with the selector of the last stage."""

    def aim(self, run, process, random):
        log = run / "log.jsonl"
        until(lambda: log.exists() and b'"step": 6' in log.read_bytes(), process)

    @property
    def window(self):
        return self.seconds / 2


class Hasty:
    """A clock by which a page is due after every step."""

    now = 0.0

    def monotonic(self):
        self.now += 1e6
        return self.now


class Reports(Runs):
    """Killed while pages are written: those of each step, and the last one."""

    def __init__(self, name, folder):
        report.time = Hasty()
        super().__init__(name, folder)

    @property
    def window(self):
        return self.seconds / 3

    def aim(self, run, process, random):
        last = [run / "metrics.json"] if random.random() < 0.7 else [run / "report.html"]
        until(lambda: all(path.exists() for path in last), process)

    def compare(self, run):
        super().compare(run)
        process = start("celstack", ["report", run], self.log)
        os.kill(process, signal.SIGKILL)
        if wait(process) not in {0, -signal.SIGKILL} or not left_by_run(run)["page"]["whole"]:
            raise Fault(f"{run}: half a page")


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

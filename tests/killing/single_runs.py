"""One run is killed: at any moment, while it is evaluated, or while its pages are written."""

import os
import signal

from forked import Fault, finish, start, strike, until, wait
from leftovers import difference, left_by_run
from recipes import RECIPES

from celstack_kit.observers import report

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

"""`run-recipe --devices N`, and what happens to it."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from celstack.training.distributed.launcher import is_distributed, is_main_process
from celstack.training.distributed.liveness import Peers, _lost_state

RECIPE = """\
dataset = {{ use = "tetrominoes", count = 31, test_count = 4, per_image = 1 }}
sprites = {{ use = "pixels", count = 3, size = [24, 24], jitter = 0.1 }}
compositor = {{ use = "ordered", layers = 1 }}
selector = "greedy"
predictor = {{ use = "network", encoder = "strided" }}
transforms.layer = ["color", "position"]
metrics = ["mse"]
evaluation.images = 4
training = {{ batch_size = 6, reassign_every = 7, checkpoint_every = 3 }}
stages = [{{ steps = 5, freeze_sprites = true }}, {{ steps = {steps} }}]
"""
CODE = "from celstack.cli import run_recipe; run_recipe()"
posix = pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")


class Run:
    """`run-recipe`, in its own process."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, *map(str, arguments), "--quiet"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def until_saved(self, out):
        """Wait for the first checkpoint, and return the folder that it is in."""
        end = time.monotonic() + 120
        while not (found := list(out.glob("*/*/checkpoint.pt"))):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        return found[0].parent

    def children(self):
        """Return the numbers of the run's processes, the first one first."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        return sorted(map(int, listed.stdout.split()))

    def end(self, seconds=60):
        """Wait for the end; return the exit code and what was said."""
        try:
            said, complaint = self.process.communicate(timeout=seconds)
        finally:
            self.process.kill()
        return self.process.returncode, said, complaint


@pytest.fixture
def recipe(tmp_path):
    def write(steps):
        path = tmp_path / f"of{steps}.toml"
        path.write_text(RECIPE.format(steps=steps))
        return path

    return write


def learned(folder):
    """Return all that a finished run has learned, to the last bit, and noted, but for times."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    kept = ("step", "model", "optimizer", "usage", "random")
    state = {key: plain(state[key]) for key in kept}
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    log = [{key: line[key] for key in line if key != "time"} for line in lines]
    return state, log, json.loads((folder / "metrics.json").read_text())


def plain(value):
    """Return a nest of values in which tensors are lists of numbers."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value.tolist() if torch.is_tensor(value) else value


def losses(folder):
    return [line["loss"] for line in learned(folder)[1] if "loss" in line]


@posix
def test_a_killed_process_ends_the_run_and_resuming_it_ends_as_if_nothing_had_happened(
    recipe, tmp_path
):
    generator = random.Random(7)
    path = recipe(40)
    began = time.monotonic()
    code, whole, complaint = Run(path, "--devices", 2, "--out", tmp_path / "whole").end(300)
    seconds = time.monotonic() - began
    assert (code, complaint) == (0, "")
    expected = learned(Path(whole.strip()))
    kills = 0
    while kills < 2:
        out = tmp_path / f"killed{len(list(tmp_path.iterdir()))}"
        run = Run(path, "--devices", 2, "--out", out)
        folder = run.until_saved(out)
        time.sleep(generator.uniform(0.0, seconds / 4))
        victims = run.children()
        if len(victims) < 2:
            run.end()
            continue  # it was finished before
        victim = generator.choice(victims)
        os.kill(victim, signal.SIGKILL)
        code, said, complaint = run.end()
        if code == 0 or not complaint:
            continue  # it had nothing left to do
        kills += 1
        rank = victims.index(victim)
        assert (code, said) == (1, "")
        assert complaint == (
            f"celstack: process {rank} of 2 (PID {victim}) is gone; progress saved. "
            f"Resume with: run-recipe --resume {folder} --devices 2\n"
        )
        code, _, complaint = Run("--resume", folder, "--devices", 2).end(300)
        assert (code, complaint) == (0, "")
        assert learned(folder) == expected


@posix
@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_hangs_is_waited_for_no_longer_than_asked(recipe, tmp_path, rank):
    run = Run(recipe(100000), "--devices", 2, "--out", tmp_path / "out", "--timeout", 3)
    folder = run.until_saved(tmp_path / "out")
    hanging = run.children()[rank]
    os.kill(hanging, signal.SIGSTOP)

    code, _, complaint = run.end(60)

    assert code == 1
    assert complaint.startswith(
        f"celstack: process {rank} of 2 (PID {hanging}) is stopped; progress saved. "
        "Resume with: "
    )
    assert not _lost_state(os.getpid())
    assert _lost_state(hanging) == "is gone"
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["step"] >= 1


@posix
@pytest.mark.parametrize(
    ("number", "expected", "why"),
    [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Stopped by SIGTERM")],
)
def test_all_stop_at_one_step_and_one_or_three_go_on(recipe, tmp_path, number, expected, why):
    out = tmp_path / "out"
    run = Run(recipe(60), "--devices", 2, "--out", out)
    folder = run.until_saved(out)
    run.process.send_signal(number)

    code, said, complaint = run.end()

    assert (code, said) == (expected, "")
    assert complaint == (
        f"celstack: {why}; progress saved. Resume with: "
        f"run-recipe --resume {folder} --devices 2\n"
    )
    before = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    step = torch.load(folder / "checkpoint.pt", weights_only=True)["step"]
    assert step == max(line["step"] for line in before)
    others = 1 if number == signal.SIGINT else 3
    code, _, complaint = Run("--resume", folder, "--devices", others).end(300)
    assert (code, complaint) == (0, "")
    assert len(losses(folder)) == 65


def test_mistakes_are_told_once(recipe, tmp_path):
    path = recipe(5)
    path.write_text(path.read_text() + 'backgrounds = { use = "pixels", count = 0 }\n')

    code, said, complaint = Run(path, "--devices", 2, "--out", tmp_path / "out").end()

    assert (code, said) == (2, "")
    assert complaint.count("celstack: ") == 1
    assert not (tmp_path / "out").exists()


def test_what_only_processes_find_out_is_told_once(recipe, tmp_path):
    path = recipe(5)
    root = tmp_path / "nowhere"
    changed = ["--set", "dataset.source='records'", "--set", f"dataset.root='{root}'"]

    code, said, complaint = Run(path, "--devices", 2, *changed).end()

    assert (code, said) == (2, "")
    assert len(complaint.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--devices", "0"], "--devices 0: must be at least 1"),
        (["--timeout", "0"], "--timeout 0.0: must be more than 0 seconds"),
        (["--timeout", "nan"], "--timeout nan: must be more than 0 seconds"),
    ],
)
def test_odd_numbers_are_refused(command, small, arguments, words):
    answer = command("run-recipe", small, *arguments)

    assert answer.code == 2
    assert answer.complaint == f"celstack: {words}\n"


def test_two_numbers_of_processes_are_refused(command, small, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")

    answer = command("run-recipe", small, "--devices", "2")

    assert answer.code == 2
    assert answer.complaint == (
        "celstack: --devices 2: torchrun has already set the number of processes\n"
    )


def test_the_first_process_is_the_one_of_rank_zero(monkeypatch):
    assert is_main_process()
    assert not is_distributed()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")

    assert is_distributed()
    assert not is_main_process()


@posix
def test_the_state_of_another_process_is_seen():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert _lost_state(other.pid) == ""
        os.kill(other.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        assert _lost_state(other.pid) == "is stopped"
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert _lost_state(other.pid) == "is gone"  # though nobody has asked for it yet
        other.wait()
        assert _lost_state(other.pid) == "is gone"


def test_of_those_that_are_left_one_tells():
    machine, own = Peers.identify()
    with subprocess.Popen([sys.executable, "-c", ""]) as other:
        pass
    known = [(machine, other.pid), (machine, own), (machine, own)]

    told = [Peers(rank, known).describe_lost("reset") for rank in (1, 2)]

    text = f"process 0 of 3 (PID {other.pid}) is gone"
    assert told == [(text, True), (text, False)]


@pytest.mark.parametrize(
    ("reason", "late"), [("Timed out waiting", "in time"), ("reset", "any more")]
)
def test_processes_of_other_machines_are_named_together(reason, late):
    machine, own = Peers.identify()

    text, tells = Peers(0, [(machine, own), (1, 1), (1, 2)]).describe_lost(reason)

    assert text == f"process 1 or 2 of 3 does not answer {late}"
    assert tells


def test_help_speaks_of_devices(command):
    said = re.sub(r"\s+", " ", command("run-recipe", "--help").said)

    assert "--devices N train in N processes" in said

"""Clocks are set forth and back: durations do not notice, and no run is overwritten."""

import ast
import json
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import torch

import celstack
import celstack.runs.directory
import celstack_kit
from celstack.report.training_log import read_training_log
from celstack.runs.directory import RunDirectory
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack.training.run_state import RunState

WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "today")}
ALLOWED = {
    "directory.py": "names of folders say when runs began",
    "run_page.py": "the page of a run that goes on says when it was written",
    "run_state.py": "a log says when it was begun, and goes on from there by itself",
}
FILES = [f for p in (celstack, celstack_kit) for f in Path(p.__file__).parent.rglob("*.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_only_those_who_say_when_something_was_ask_the_clock_on_the_wall(path):
    calls = (
        n.func for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)
    )
    named = {(ast.unparse(f.value), f.attr) for f in calls if isinstance(f, ast.Attribute)}

    assert path.name in ALLOWED or not named & WALL


@pytest.mark.parametrize("jump", [-3600.0, 3600.0], ids=["back", "forth"])
def test_a_clock_that_is_set_does_not_change_how_long_a_run_took(jump, tmp_path, monkeypatch):
    decomposer = plain_decomposer(PlainSelector())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    directory = RunDirectory.create(tmp_path, "mine", seed=0)
    passed, wall = time.monotonic(), time.time()
    monkeypatch.setattr(time, "monotonic", lambda: passed)
    monkeypatch.setattr(time, "time", lambda: wall)
    state = RunState(decomposer, torch.optim.Adam(decomposer.parameters()), directory)

    state.log(begins="one")
    passed += 2.0
    wall += 2.0 + jump
    state.log(begins="two")
    directory.close()

    log = directory.folder / "log.jsonl"
    first, second = (json.loads(line)["time"] for line in log.read_text().splitlines())
    assert second - first == pytest.approx(2.0, abs=0.01)
    assert read_training_log(log).seconds == pytest.approx(2.0, abs=0.01)


class Clock(datetime):
    """A clock that is set back by an hour after each look, and by the second look again."""

    looks = iter([0, -3600, 0, -3600])

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 10, 25, 3, 0, 0) + timedelta(seconds=next(cls.looks))


def test_an_hour_that_comes_twice_overwrites_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(celstack.runs.directory, "datetime", Clock)

    names = [RunDirectory.create(tmp_path, "mine", seed=0).folder.name for _ in range(4)]

    assert names == [
        "2026-10-25-03.00.00-seed0",
        "2026-10-25-02.00.00-seed0",
        "2026-10-25-03.00.00-seed0-1",
        "2026-10-25-02.00.00-seed0-1",
    ]

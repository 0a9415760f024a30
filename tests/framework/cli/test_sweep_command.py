"""`celstack sweep` as a newcomer meets it."""

import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from filelock import FileLock

from celstack.runs.finished import read_finished
from celstack.runs.sweep import local

CODE = "from celstack.cli import celstack; celstack()"


@pytest.fixture
def started(monkeypatch):
    """List the environments of all processes that a sweep starts; they do start."""
    environments = []
    start = subprocess.Popen

    def noting(*arguments, **options):
        if "celstack.cli.watched_run" in arguments[0]:
            environments.append(options["env"])
        return start(*arguments, **options)

    monkeypatch.setattr(local.subprocess, "Popen", noting)
    return environments


@pytest.fixture
def sweep(command, small, tmp_path):
    """Sweep the small recipe and return the answer and what is left."""
    out = tmp_path / "swept"

    def run(*arguments):
        answer = command("celstack", "sweep", small, "--out", str(out), *arguments)
        found = out / "sweep.json"
        return SimpleNamespace(
            answer=answer,
            out=out,
            folders=sorted(path.parent for path in out.glob("my/*/resolved.toml")),
            record=json.loads(found.read_text("utf-8")) if found.exists() else None,
        )

    return run


def test_a_sweep_leaves_runs_table_and_page_and_goes_on_when_the_grid_grows(
    sweep, started, monkeypatch, tmp_path
):
    # Whatever lies where the user is, is not imported.
    (tmp_path / "torch.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(local, "count_cores", lambda: 5)

    first = sweep("--grid", "sprites.count=2,3", "--jobs", "2")

    assert first.answer.code == 0, first.answer.complaint
    assert [one["OMP_NUM_THREADS"] for one in started] == ["2", "2"]
    counts = {read_finished(one).recipe["sprites"]["count"] for one in first.folders}
    assert counts == {2, 3}
    assert [run["options"] for run in first.record["runs"]] == [
        {"sprites.count": 2},
        {"sprites.count": 3},
    ]
    assert all((first.out / run["folder"]).is_dir() for run in first.record["runs"])
    table = (first.out / "sweep.md").read_text("utf-8")
    assert table in first.answer.said
    assert "| sprites.count = 3 | 1 | 16 of test |" in table
    assert (first.out / "sweep.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert first.answer.said.startswith(f"2 runs in {first.out}\n")
    assert "run 1 of 2: sprites.count = 2: started\n" in first.answer.complaint

    started.clear()
    again = sweep("--grid", "sprites.count=2,3", "--quiet")

    assert (again.answer.said, again.answer.complaint) == (f"{again.out}\n", "")
    assert (started, again.folders, again.record) == ([], first.folders, first.record)

    grown = sweep("--grid", "sprites.count=2,3,4", "--jobs", "9")

    assert grown.answer.code == 0
    assert "3 runs in" in grown.answer.said
    assert "2 of them already finished" in grown.answer.said
    assert [one["OMP_NUM_THREADS"] for one in started] == ["5"]
    assert len(grown.folders) == 3


def test_a_run_that_fails_costs_only_itself_and_is_told_at_the_end(sweep):
    ran = sweep("--grid", "training.prototype_rate=1e-3,1e38", "--set", "stages[0].steps=9")

    reason = ran.record["failed"][0]["reason"]
    assert ran.answer.code == 1
    assert ran.answer.complaint.splitlines()[-2:] == [
        f"celstack: training.prototype_rate = 1e+38: failed: {reason}",
        "celstack: 1 of 2 runs failed; the same command runs them again",
    ]
    assert reason.startswith("step ")
    assert len(ran.record["runs"]) == 1
    assert "| training.prototype_rate = 1e+38 | 0 of 1 |" in ran.answer.said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--grid", "sprites.count=0"], "sprites.count: must be an integer"),
        ([], "--grid: required"),
        (["--grid", "seed=1", "--jobs", "0"], "--jobs 0: must be at least 1"),
        (["--grid", "seed=1", "--device", "abacus"], "--device abacus: cannot be used here"),
        (["--grid", "seed=1", "--launcher-set", "a=1"], "--launcher-set: needs --launcher"),
        (
            ["--grid", "seed=1", "--launcher", "local"],
            "--launcher-set: the time limit of jobs is required",
        ),
        (
            ["--grid", "dataset.per_image=2,1", "--grid", "seed=0,1"],
            "compositor.layers: 1 cannot hold the 2 objects that tetrominoes may show "
            "(with dataset.per_image = 2)",
        ),
    ],
)
def test_mistakes_are_told_before_anything_starts(sweep, started, arguments, complaint):
    ran = sweep(*arguments)

    assert ran.answer.code == 2
    assert complaint in ran.answer.complaint
    assert ran.answer.complaint.count("\n") == 1
    assert not ran.out.exists()
    assert started == []


def test_two_sweeps_in_one_folder_are_refused(sweep, tmp_path):
    (tmp_path / "swept").mkdir()
    with FileLock(tmp_path / "swept" / ".lock"):
        ran = sweep("--grid", "seed=0")

    assert ran.answer.code == 2
    assert "in use by another sweep" in ran.answer.complaint


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent there")
def test_a_sweep_that_is_stopped_or_killed_goes_on_where_it_was(sweep, small, tmp_path):
    out = tmp_path / "swept"
    options = ["--grid", "seed=3", "--set", "stages[0].steps=300"]

    def start():
        words = [sys.executable, "-c", CODE, "sweep", small, "--out", str(out), *options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def steps():
        logs = [log.read_text("utf-8") for log in out.glob("my/*/log.jsonl")]
        return logs[0].count('"loss"') if logs else 0

    interrupted = start()
    try:
        wait_for(lambda: steps() > 0)
        interrupted.send_signal(signal.SIGINT)
        _, complaint = interrupted.communicate(timeout=60)
    finally:
        interrupted.kill()
    (folder,) = out.glob("my/*")
    first = steps()

    assert interrupted.returncode == 130
    assert complaint.decode().splitlines()[-1] == (
        "celstack: Interrupted; progress saved, 0 of 1 runs finished. "
        "Resume with the same command"
    )
    assert (folder / "checkpoint.pt").exists()
    assert first < 300

    killed = start()
    try:
        wait_for(lambda: steps() > first)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    # Nobody tells the run to stop: it notices that its sweep is no more.
    with FileLock(folder / ".lock", timeout=30):
        second = steps()

    assert first < second < 300

    ran = sweep(*options)

    assert ran.answer.code == 0, ran.answer.complaint
    assert "run 1 of 1: seed = 3: resumed" in ran.answer.complaint
    assert ran.folders == [folder]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 301))


def test_a_name_of_its_own_for_what_varies(command, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        local, "run_locally", lambda makers, *_, **__: dict.fromkeys([0, 1], "no")
    )

    answer = command(
        "celstack", "sweep", small, "--grid", "transforms.layer[0].use=color,identity"
    )

    assert answer.code == 1
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == "sweep-my-transforms.layer_0_.use"
    assert answer.complaint.startswith(
        "celstack: transforms.layer[0].use = 'color': failed: no\n"
    )

"""Threads are shared out, and reasons are told in a line."""

import pytest

from celstack.runs.sweep import local
from celstack.runs.sweep.failures import failure_reason
from celstack.runs.sweep.progress import last_step


@pytest.mark.parametrize(
    ("cores", "jobs", "threads"), [(8, 2, 4), (8, 3, 2), (2, 2, 1), (2, 5, 1), (4, 1, 4)]
)
def test_runs_share_the_cores(monkeypatch, cores, jobs, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(local, "count_cores", lambda: cores)

    assert local.threads_per_run(jobs) == threads


def test_what_the_user_says_of_threads_counts_for_each_run(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    assert local.threads_per_run(2) == 3


@pytest.mark.parametrize(
    ("stderr", "code", "reason"),
    [
        ("celstack: step 3: the loss is nan\n", 1, "step 3: the loss is nan"),
        ("celstack: warning: a\ncelstack: b\nodd\n", 1, "b"),
        ("Traceback:\n  x\nValueError: odd\n", 1, "ValueError: odd"),
        ("", 1, "it exited without scores and without an error message"),
        ("", 0, "it exited without scores and without an error message"),
        (
            "celstack: a\n",
            -9,
            "its process was killed by SIGKILL (possibly out of memory)",
        ),
        ("", -15, "its process was killed by SIGTERM"),
    ],
)
def test_a_reason_is_the_last_that_a_run_complained_of(tmp_path, stderr, code, reason):
    assert failure_reason(tmp_path, stderr, code) == reason


def test_a_finished_run_has_no_reason_to_fail(tmp_path):
    (tmp_path / "metrics.json").write_text("{}")

    assert failure_reason(tmp_path, "celstack: warning: anything\n", 0) == ""


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("", 0),
        ('{"step": 3}\n{"step": 4, "loss": 1.0}\n', 4),
        ('{"step": 3}\n{"step": 4, "lo', 3),
        ('{"step": 7}\n' + "x" * 2000, 7),
        ("[1]\n", 0),
    ],
)
def test_the_last_step_of_a_log_is_found(tmp_path, text, step):
    (tmp_path / "log.jsonl").write_text(text)

    assert last_step(tmp_path / "log.jsonl") == step


def test_a_log_that_is_not_there_has_no_step(tmp_path):
    assert last_step(tmp_path / "log.jsonl") == 0

"""Progress of a sweep."""

import pytest

from celstack.runs.sweep.progress import SweepProgress


@pytest.fixture
def run(tmp_path):
    """The folder of a run that is at its third step."""
    (tmp_path / "log.jsonl").write_text('{"step": 3, "reconstruction": 0.25}\n')
    return tmp_path


def test_where_nothing_can_move_there_are_plain_lines(run, capsys):
    with SweepProgress(["a = [1]", "b"], [None, 5], quiet=False) as progress:
        progress.run_started(0, run)
        progress.refresh()
        progress.run_ended(0, run, "")
        (run / "checkpoint.pt").touch()
        progress.run_started(1, run)
        progress.run_ended(1, run, "no room")

    assert capsys.readouterr().err.splitlines() == [
        "run 1 of 2: a = [1]: started",
        "run 1 of 2: a = [1]: finished after 0 seconds, loss 0.25",
        "run 2 of 2: b: resumed",
        "run 2 of 2: b: failed: no room",
    ]


def test_a_terminal_shows_how_far_runs_are(run, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    with SweepProgress(["a = [1]"], [5], quiet=False) as progress:
        progress.run_started(0, run)
        progress.refresh()
        progress.progress.refresh()

    shown = capsys.readouterr().err
    assert "a = [1]" in shown
    assert "3/5" in shown


def test_quiet_is_quiet(run, capsys):
    with SweepProgress(["a"], [5], quiet=True) as progress:
        progress.run_started(0, run)
        progress.run_ended(0, run, "no room")

    assert capsys.readouterr().err == ""

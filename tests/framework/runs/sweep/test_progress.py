"""What a sweep tells while it goes on."""

import pytest

from celstack.runs.sweep.progress import Listener


@pytest.fixture
def run(tmp_path):
    """The folder of a run that is at its third step."""
    (tmp_path / "log.jsonl").write_text('{"step": 3, "reconstruction": 0.25}\n')
    return tmp_path


def test_where_nothing_can_move_there_are_plain_lines(run, capsys):
    with Listener(["a = [1]", "b"], [None, 5], quiet=False) as listener:
        listener.begins(0, run)
        listener.looks()
        listener.ends(0, run, "")
        (run / "checkpoint.pt").touch()
        listener.begins(1, run)
        listener.ends(1, run, "no room")

    assert capsys.readouterr().err.splitlines() == [
        "run 1 of 2: a = [1]: begins",
        "run 1 of 2: a = [1]: is finished after 0 seconds, loss 0.25",
        "run 2 of 2: b: goes on",
        "run 2 of 2: b: failed: no room",
    ]


def test_a_terminal_shows_how_far_runs_are(run, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    with Listener(["a = [1]"], [5], quiet=False) as listener:
        listener.begins(0, run)
        listener.looks()
        listener.progress.refresh()

    said = capsys.readouterr().err
    assert "a = [1]" in said
    assert "3/5" in said


def test_quiet_is_quiet(run, capsys):
    with Listener(["a"], [5], quiet=True) as listener:
        listener.begins(0, run)
        listener.ends(0, run, "no room")

    assert capsys.readouterr().err == ""

import pytest

from celstack import progress as waiting
from celstack.progress import WorkProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told the time."""
    now = [0.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    return now


def test_two_seconds_need_no_word(clock, capsys):
    with WorkProgress("drawing", 10) as told:
        clock[0] = 1.9
        told.advance(10)

    assert capsys.readouterr().err == ""


def test_elsewhere_than_in_a_terminal_there_are_few_plain_lines(clock, capsys):
    with WorkProgress("drawing [x]", 100) as told:
        for second in range(1, 40):
            clock[0] = second
            told.advance(2)

    assert capsys.readouterr().err == "drawing [x]: 4 of 100\ndrawing [x]: 64 of 100\n"


def test_a_terminal_has_a_bar_that_goes_away(clock, capsys, monkeypatch):
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with WorkProgress("drawing", 100) as told:
        clock[0] = 3
        told.advance(30)
        assert told.bar is not None
        told.advance(30)
        assert told.bar.tasks[0].completed == 60

    assert "drawing" in capsys.readouterr().err

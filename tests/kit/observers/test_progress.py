import io

import pytest
import torch
from rich.console import Console

from celstack.assembly import Stage
from celstack.curriculum import schedule
from celstack.objective import Loss
from celstack.testing import check_observer
from celstack_kit.observers import progress
from celstack_kit.observers.progress import Progress

LOSS = Loss(torch.tensor(0.5), torch.tensor(0.25))
(PHASE,) = schedule([Stage(name="[bold]colours", steps=4)], images=4, batch_size=4)


@pytest.fixture
def terminal(monkeypatch):
    """Let the observer write to a terminal, and return what appears there."""
    screen = io.StringIO()
    for variable in ("NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(
        progress, "Console", lambda **_: Console(file=screen, force_terminal=True, width=100)
    )
    return screen


@pytest.fixture(autouse=True)
def no_colour_is_forced(monkeypatch):
    """What a developer's shell says about terminals does not matter here."""
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)


def tell(observer, steps=4, until=None):
    """Tell the story of a run, or of one that is stopped."""
    observer.celstack_run_started(steps=steps)
    observer.celstack_phase_started(phase=PHASE, step=0)
    for step in range(1, (until or steps) + 1):
        observer.celstack_step_finished(step=step, loss=LOSS)
    if until:
        observer.celstack_run_stopped(step=until, reason="interrupted")
    else:
        observer.celstack_evaluated(step=steps, scores={"mse": 0.125, "ari": 1.0})
        observer.celstack_run_finished()


def test_it_keeps_the_promises_of_an_observer():
    check_observer(Progress())


def test_where_there_is_no_terminal_it_writes_plain_lines_to_standard_error(capsys):
    tell(Progress())

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "step 0: [bold]colours begins",
        "step 1 of 4: [bold]colours, loss 0.75000",
        "step 2 of 4: [bold]colours, loss 0.75000",
        "step 3 of 4: [bold]colours, loss 0.75000",
        "step 4 of 4: [bold]colours, loss 0.75000",
        "step 4: mse 0.1250, ari 1.0000",
    ]


def test_a_long_run_gets_ten_lines_and_the_last_step_is_among_them(capsys):
    tell(Progress(), steps=205)

    steps = [s.split()[1] for s in capsys.readouterr().err.splitlines() if " of 205" in s]
    assert len(steps) == 10
    assert steps[0] == "21"
    assert steps[-1] == "205"


def test_a_run_that_is_stopped_says_so(capsys):
    tell(Progress(), until=2)

    assert capsys.readouterr().err.splitlines()[-1] == "step 2: stopped: interrupted"


def test_no_scores_are_no_line(capsys):
    observer = Progress()
    observer.celstack_run_started(steps=1)

    observer.celstack_evaluated(step=1, scores={})

    assert capsys.readouterr().err == ""


def test_in_a_terminal_a_bar_shows_stage_steps_and_loss(terminal):
    tell(Progress())

    last = terminal.getvalue().splitlines()[-2]  # the cursor comes back in a line of its own
    assert "[bold]colours" in last
    assert "4/4" in last
    assert "loss 0.75000" in last


def test_in_a_terminal_there_are_no_plain_lines(terminal):
    tell(Progress())

    assert "begins" not in terminal.getvalue()
    assert "of 4" not in terminal.getvalue()


@pytest.mark.parametrize("until", [None, 2])
def test_the_cursor_comes_back_in_the_end(terminal, until):
    tell(Progress(), until=until)

    show, hide = "\x1b[?25h", "\x1b[?25l"
    assert terminal.getvalue().rfind(show) > terminal.getvalue().rfind(hide) > -1


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")

    tell(Progress())

    assert "step 4 of 4: [bold]colours, loss 0.75000\n" in terminal.getvalue()


def test_quiet_leaves_it_out():
    assert Progress.terminal

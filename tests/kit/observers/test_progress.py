import io
import re

import pytest
import torch

from celstack import Loss, StatusConsole
from celstack.recipe.assembly import Stage
from celstack.recipe.schedule import schedule
from celstack.runs.findings import Finding
from celstack.testing import check_observer
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack_kit.observers import progress
from celstack_kit.observers.progress import Progress

LOSS = Loss(torch.tensor(0.5), torch.tensor(0.25))
(PHASE,) = schedule([Stage(name="[bold]colours", steps=4)], images=4, batch_size=4)


class Screen(io.StringIO):
    """A terminal that knows UTF-8."""

    encoding = "utf-8"


@pytest.fixture
def terminal(monkeypatch):
    """Let the observer write to a terminal, and return what appears there."""
    screen = Screen()
    for variable in ("NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(
        progress,
        "StatusConsole",
        lambda **_: StatusConsole(file=screen, force_terminal=True, width=100, height=30),
    )
    return screen


class Clock:
    """A second passes with each step of a story."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let time pass as tests say."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def model():
    """A model whose three sprites are opaque and red."""
    decomposer = plain_decomposer(PlainSelector())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    with torch.no_grad():
        decomposer.sprites.pixels[:] = torch.tensor([1.0, 0.0, 0.0, 1.0])[:, None, None]
    return decomposer


@pytest.fixture(autouse=True)
def no_colour_is_forced(monkeypatch):
    """What a developer's shell says about terminals does not matter here."""
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def tell(clock):
    """Tell the story of a run, or of one that is stopped, at a step a second."""

    def story(observer, steps=4, until=None, after=0):
        observer.celstack_run_started(decomposer=model(), steps=steps, step=after)
        observer.celstack_phase_started(phase=PHASE, step=after)
        for step in range(after + 1, (until or steps) + 1):
            clock.now += 1
            observer.celstack_step_finished(step=step, loss=LOSS, images=1500)
        if until:
            observer.celstack_run_stopped(step=until, reason="interrupted")
        else:
            observer.celstack_evaluated(step=steps, scores={"mse": 0.125, "ari": 1.0})
            observer.celstack_run_finished()

    return story


def test_it_keeps_the_promises_of_an_observer():
    check_observer(Progress())


def test_where_there_is_no_terminal_it_writes_plain_lines_to_standard_error(capsys, tell):
    tell(Progress())

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "step 0: starting [bold]colours",
        "step 1 of 4: [bold]colours, loss 0.75000, 1,500 images/s, 0:00:03 left",
        "step 2 of 4: [bold]colours, loss 0.75000, 1,500 images/s, 0:00:02 left",
        "step 3 of 4: [bold]colours, loss 0.75000, 1,500 images/s, 0:00:01 left",
        "step 4 of 4: [bold]colours, loss 0.75000, 1,500 images/s, 0:00:00 left",
        "step 4: mse 0.1250, ari 1.0000",
    ]


def test_a_long_run_gets_ten_lines_and_the_last_step_is_among_them(capsys, tell):
    tell(Progress(), steps=205)

    steps = [s.split()[1] for s in capsys.readouterr().err.splitlines() if " of 205" in s]
    assert len(steps) == 10
    assert steps[0] == "21"
    assert steps[-1] == "205"


def test_a_run_that_goes_on_says_from_where_and_reckons_from_there(capsys, tell):
    tell(Progress(), after=2)

    assert capsys.readouterr().err.splitlines()[:2] == [
        "step 2 of 4: resumed",
        "step 3 of 4: [bold]colours, loss 0.75000, 1,500 images/s, 0:00:01 left",
    ]


def test_a_run_that_is_stopped_says_so(capsys, tell):
    tell(Progress(), until=2)

    assert capsys.readouterr().err.splitlines()[-1] == "step 2: stopped: interrupted"


def test_a_kind_of_finding_is_a_line_once(capsys, tell):
    tell(observer := Progress())
    findings = [
        Finding("unused-sprite", f"sprite [{k}]", "selected 0 of 40 times") for k in (1, 2)
    ]
    capsys.readouterr()

    for step in (500, 1000):
        observer.celstack_health_checked(step, findings)

    told = "step 500: health: sprite [1]: unused sprite (selected 0 of 40 times), and 1 more"
    hint = "see 'celstack show health unused-sprite'"
    assert capsys.readouterr().err == f"{told}; {hint}\n"


def test_no_scores_are_no_line(capsys):
    observer = Progress()
    observer.celstack_run_started(decomposer=model(), steps=1, step=0)

    observer.celstack_evaluated(step=1, scores={})

    assert capsys.readouterr().err == ""


def test_in_a_terminal_a_bar_shows_stage_steps_loss_and_speed(terminal, tell):
    tell(Progress())

    last = terminal.getvalue().splitlines()[-2]  # the cursor comes back in a line of its own
    assert "[bold]colours" in last
    assert "4/4" in last
    assert "loss 0.75000" in last
    assert "1,500 images/s" in last


def test_in_a_terminal_there_are_no_plain_lines(terminal, tell):
    tell(Progress())

    assert "starting" not in terminal.getvalue()
    assert "of 4" not in terminal.getvalue()


@pytest.mark.parametrize("until", [None, 2])
def test_the_cursor_comes_back_in_the_end(terminal, tell, until):
    tell(Progress(), until=until)

    show, hide = "\x1b[?25h", "\x1b[?25l"
    assert terminal.getvalue().rfind(show) > terminal.getvalue().rfind(hide) > -1


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(terminal, monkeypatch, tell):
    monkeypatch.setenv("TERM", "dumb")

    tell(Progress())

    assert "step 4 of 4: [bold]colours, loss 0.75000, " in terminal.getvalue()


RED = re.escape("\x1b[38;2;255;0;0;48;2;255;0;0m▀▀▀▀▀▀▀▀")


def test_a_terminal_of_all_colours_shows_the_sprites(terminal, monkeypatch, tell):
    monkeypatch.setenv("COLORTERM", "truecolor")

    tell(Progress())

    rows = [row for row in terminal.getvalue().splitlines() if re.search(RED, row)]
    assert rows
    assert all(len(re.findall(RED, row)) == 3 for row in rows)


@pytest.mark.parametrize(
    ("colours", "encoding", "options"),
    [
        ("", "utf-8", {}),
        ("truecolor", "ascii", {}),
        ("truecolor", "utf-8", {"sprites": False}),
    ],
)
def test_others_show_none(terminal, monkeypatch, tell, colours, encoding, options):
    monkeypatch.setenv("COLORTERM", colours)
    monkeypatch.setattr(Screen, "encoding", encoding)

    tell(Progress(**options))

    assert "▀" not in terminal.getvalue()
    assert "loss 0.75000" in terminal.getvalue()


def test_sprites_are_drawn_once_a_second_and_at_the_last_step(terminal, monkeypatch, clock):
    monkeypatch.setenv("COLORTERM", "truecolor")
    drawn = []
    monkeypatch.setattr(progress, "draw", lambda *_: drawn.append(clock.now))
    observer = Progress()
    observer.celstack_run_started(decomposer=model(), steps=8, step=0)

    for step in range(1, 9):
        clock.now += 0.4
        observer.celstack_step_finished(step=step, loss=LOSS, images=1)
    observer.celstack_run_finished()

    assert [round(moment - 100, 1) for moment in drawn] == [0.4, 1.6, 2.8, 3.2]


def test_quiet_leaves_it_out():
    assert Progress.terminal

import re
from datetime import datetime

import attrs
import pytest
import torch

from celstack import Assembly, Stage, run
from celstack.signals import INTERRUPTED_TWICE
from celstack.testing import check_observer
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainMetric,
    PlainPredictor,
    PlainPrototype,
)
from celstack_kit.observers import report
from celstack_kit.observers.report import Report


def make(observer, metrics=None):
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(name="only", steps=3)],
        metrics=metrics or [],
        observers=[observer],
    )


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(report, "time", found := Clock())
    return found


@pytest.fixture
def pages(monkeypatch):
    """The states of the pages that would be written."""
    made = []
    monkeypatch.setattr(Report, "_write", lambda self, state: made.append(state))
    return made


def begin(observer, folder):
    assembly = make(observer)
    decomposer = assembly.decomposer()
    decomposer.prepare(torch.rand(2, *PlainDataset.image_shape))
    observer.celstack_run_started(assembly, decomposer, folder, steps=100)


def test_it_keeps_the_promises_of_an_observer():
    check_observer(Report())


def test_a_run_that_ends_leaves_a_page(tmp_path):
    trained = run(make(Report(), [PlainMetric()]), tmp_path)

    page = (trained.folder / "report.html").read_text(encoding="utf-8")
    assert "A sprite is a small image" in page
    assert 'http-equiv="refresh"' not in page
    assert not list(trained.folder.glob("*.tmp"))


def test_a_run_without_a_folder_leaves_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run(make(Report()))

    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_stopped_leaves_a_page_that_says_why(tmp_path):
    class Broken(PlainDataset):
        reads = 0

        def read(self, split, indices):
            self.reads += split == "test"
            if self.reads == 2:  # the first is a check, before the first step
                raise RuntimeError("the disk <is> gone")
            return super().read(split, indices)

    with pytest.raises(RuntimeError):
        run(attrs.evolve(make(Report()), dataset=Broken()), tmp_path)

    (page,) = tmp_path.rglob("report.html")
    text = page.read_text(encoding="utf-8")
    assert "Stopped after step 3: RuntimeError: the disk &lt;is&gt; gone." in text


def test_nobody_who_was_heard_twice_waits_for_a_page(tmp_path):
    observer = Report()
    begin(observer, tmp_path)

    observer.celstack_run_stopped(step=3, reason=INTERRUPTED_TWICE)

    assert list(tmp_path.iterdir()) == []


def test_pages_are_written_every_so_many_seconds(tmp_path, clock, pages):
    observer = Report(every=30)
    begin(observer, tmp_path)

    for step in range(1, 101):
        clock.now += 1
        observer.celstack_step_finished(step=step)

    steps = [int(re.search(r"Training: step (\d+) of 100\.", state.text)[1]) for state in pages]
    assert steps == [30, 60, 90]
    assert {state.refresh for state in pages} == {30}
    assert all("This page refreshes every 30 seconds." in state.text for state in pages)


def test_slow_pages_are_written_less_often(tmp_path, clock, monkeypatch):
    made = []

    def write(self, state):
        made.append(clock.now)
        clock.now += 10

    monkeypatch.setattr(Report, "_write", write)
    observer = Report(every=30)
    begin(observer, tmp_path)

    while clock.now < 1000:
        clock.now += 1
        observer.celstack_step_finished(step=1)

    assert made[:3] == [30, 240, 450]


def test_a_page_in_the_middle_of_a_run_is_whole(tmp_path, clock):
    observer = Report(every=1)
    begin(observer, tmp_path)

    clock.now = 5
    observer.celstack_step_finished(step=4)

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = "Training: step 4 of 100. This page refreshes every second. Last active: "
    assert text + f"{datetime.now():%Y-%m-%d}" in page
    assert 'content="1"' in page
    assert "Random selection" in page


def test_it_is_no_matter_of_the_terminal():
    assert not Report.terminal

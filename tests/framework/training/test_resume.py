"""Runs that are stopped and go on, in one process; test_killed.py kills real ones."""

import json
import shutil
import signal
import sys
import threading

import attrs
import pytest
import torch

from celstack.cli.output import printed_warnings
from celstack.errors import CelstackError
from celstack.hookspecs import hookimpl
from celstack.interfaces.observer import Observer
from celstack.recipe.assembly import Assembly, Evaluation, Stage, Training, Transforms
from celstack.runs.directory import RunDirectory
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainEncoder,
    PlainMetric,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)
from celstack.training.loop import run

STEPS = 14
STAGES = [
    Stage(steps=5, freeze_sprites=True, transforms=["plain_transform"], network_factor=0.5),
    Stage(name="second", steps=9),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny tensors are slower on many threads, and the machine may be shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Seeing(PlainPredictor):
    """Has an encoder among its parts, and one that remembers what it saw."""

    def __init__(self):
        super().__init__()
        self.encoder = PlainEncoder()
        self.norm = torch.nn.BatchNorm2d(3)

    def prepare(self, outline):
        super().prepare(outline)
        self.encoder.prepare(outline.image_shape)

    def forward(self, images):
        return super().forward(self.norm(images))


class Stopping(Observer):
    """Presses Ctrl-C after a step, and writes down what it hears."""

    def __init__(self, after=0):
        self.after, self.heard, self.steps = after, [], []

    @hookimpl
    def celstack_run_started(self, step, steps):
        self.heard.append(f"started after {step} of {steps}")

    @hookimpl
    def celstack_phase_started(self, phase, step):
        self.heard.append(f"{phase.title} after {step}")

    @hookimpl
    def celstack_checkpoint_saved(self, step):
        self.heard.append(f"saved {step}")

    @hookimpl
    def celstack_step_finished(self, step, loss):
        self.steps.append((step, float(loss.total)))
        if step == self.after:
            raise KeyboardInterrupt


def make(*observers, **training):
    """Put plain parts together; 16 images make four batches, the last one smaller."""
    rates = {"prototype_rate": 0.02, "head_rate": 0.02, "reassign_every": 4}
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(empty_cost=None),
        predictor=Seeing(),
        transforms=Transforms(sprite=[PlainWarp()], layer=[PlainTransform()]),
        stages=STAGES,
        training=Training(batch_size=5, **{**rates, **training}),
        evaluation=Evaluation(images=8),
        metrics=[PlainMetric()],
        observers=list(observers),
        seed=3,
    )


def stopped(tmp_path, after, **training):
    """Stop a run after a step; return its directory."""
    directory = RunDirectory.create(tmp_path / "runs", "mine", seed=3)
    with pytest.raises(KeyboardInterrupt):
        run(make(Stopping(after), **training), directory)
    return directory.folder


def weights(trained):
    return trained.decomposer.state_dict()


def differing(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody stopped: the model, the losses, the folder."""
    observer = Stopping()
    trained = run(make(observer), tmp_path_factory.mktemp("whole"))
    return trained, observer.steps


def saved(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)


# In the first stage and between stages, right after a reassignment and before one, within an
# epoch of four batches and between epochs, before the first step and after the last.
@pytest.mark.parametrize("after", [1, 3, 4, 5, 6, 8, 11, STEPS])
def test_a_run_that_goes_on_is_the_same_to_the_last_bit(tmp_path, whole, after):
    folder = stopped(tmp_path, after)
    torch.rand(7)
    observer = Stopping()

    trained = run(make(observer), folder, resume=True)

    expected, losses = whole
    assert differing(weights(expected), weights(trained)) == set()
    assert observer.steps == losses[after:]
    assert trained.scores == expected.scores
    optimizers = [saved(one.folder)["optimizer"]["state"] for one in (expected, trained)]
    for parameter, moments in optimizers[0].items():
        assert differing(moments, optimizers[1][parameter]) == set()


def test_a_run_may_be_stopped_many_times(tmp_path, whole):
    folder = stopped(tmp_path, 1)
    for after in range(2, STEPS):
        with pytest.raises(KeyboardInterrupt):
            run(make(Stopping(after)), folder, resume=True)

    trained = run(make(), folder, resume=True)

    assert differing(weights(whole[0]), weights(trained)) == set()


def test_the_log_has_every_line_once(tmp_path, whole, log_of):
    folder = stopped(tmp_path, 6)
    # What a process that was killed has logged since its last checkpoint.
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"step": 7, "stage": "second", "loss": 0.1}\n{"step": 8, "st')

    run(make(), folder, resume=True)

    assert log_of(folder) == log_of(whole[0].folder)


# Forking a process that has used threads makes newer Pythons warn.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_place_in_the_epoch_is_found_with_workers_too(tmp_path, whole):
    folder = stopped(tmp_path, 6, workers=1)

    trained = run(make(workers=1), folder, resume=True)

    assert differing(weights(whole[0]), weights(trained)) == set()


def test_a_run_without_a_checkpoint_starts_again_in_its_folder(tmp_path, whole, log_of):
    folder = stopped(tmp_path, 6)
    (folder / "checkpoint.pt").unlink()
    observer = Stopping()

    trained = run(make(observer), folder, resume=True)

    assert trained.folder == folder
    assert observer.steps == whole[1]
    assert log_of(folder) == log_of(whole[0].folder)


def test_observers_hear_where_a_run_goes_on(tmp_path):
    observer = Stopping()

    run(make(observer), stopped(tmp_path, 6), resume=True)

    assert observer.heard == [f"started after 6 of {STEPS}", "second after 6", "saved 14"]


def test_a_stage_that_had_not_begun_begins(tmp_path):
    observer = Stopping()

    run(make(observer), stopped(tmp_path, 5), resume=True)

    assert observer.heard[1] == "second after 5"


def test_a_run_whose_steps_are_done_is_only_scored(tmp_path, whole):
    folder = shutil.copytree(whole[0].folder, tmp_path / "run")
    (folder / "metrics.json").unlink()
    observer = Stopping()

    trained = run(make(observer), folder, resume=True)

    assert (observer.steps, trained.scores) == ([], whole[0].scores)
    assert (folder / "metrics.json").is_file()


def test_a_run_whose_steps_are_done_is_scored_with_the_selector_of_its_last_stage(tmp_path):
    stages = [Stage(steps=2), Stage(steps=1, selector=PlainSelector(empty_cost=100.0))]
    expected = run(attrs.evolve(make(), stages=stages), tmp_path)
    other = run(attrs.evolve(make(), stages=[Stage(steps=3)]))
    assert other.scores != expected.scores
    # As if it was killed while it was evaluated.
    (expected.folder / "metrics.json").unlink()
    observer = Stopping()

    trained = run(attrs.evolve(make(observer), stages=stages), expected.folder, resume=True)

    assert trained.scores == expected.scores
    assert trained.decomposer.selector.empty_cost == 100.0
    assert observer.heard == ["started after 3 of 3", "stage 2 after 3"]


class Pressing(Seeing):
    """Presses Ctrl-C in the midst of the sixth step."""

    seen = 0

    def forward(self, images):
        prediction = super().forward(images)
        self.seen += 1
        if self.seen == 6:
            signal.raise_signal(signal.SIGINT)
        return prediction


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent there")
def test_ctrl_c_in_the_midst_of_a_step_waits_until_it_is_whole(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        run(attrs.evolve(make(), predictor=Pressing()), tmp_path)

    (folder,) = tmp_path.glob("*/*")
    assert saved(folder)["step"] == 6
    trained = run(make(), folder, resume=True)
    assert differing(weights(whole[0]), weights(trained)) == set()


class Tired(Seeing):
    """Fails at the fourth batch, when it has already learned something of it."""

    seen = 0

    def forward(self, images):
        prediction = super().forward(images)
        self.seen += 1
        if self.seen == 4:
            raise ValueError("tired")
        return prediction


def test_a_step_that_fails_is_not_saved_because_it_is_half_a_step(tmp_path):
    assembly = attrs.evolve(make(checkpoint_every=2), predictor=Tired())

    with pytest.raises(ValueError, match="tired"):
        run(assembly, tmp_path)

    (folder,) = tmp_path.glob("*/*")
    assert saved(folder)["step"] == 2
    assert json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"] == 3


def test_a_checkpoint_made_with_another_torch_is_used_with_a_warning(tmp_path, capsys):
    folder = stopped(tmp_path, 6)
    torch.save({**saved(folder), "torch": "1.0"}, folder / "checkpoint.pt")

    with printed_warnings():
        run(make(), folder, resume=True)

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("celstack: warning: ")
    assert "saved with torch 1.0, now running " in line


def test_resuming_needs_a_directory():
    with pytest.raises(CelstackError, match="resume=True: needs the directory"):
        run(make(), resume=True)


def test_resuming_needs_a_directory_that_is_there(tmp_path):
    with pytest.raises(CelstackError, match="there is no such folder"):
        run(make(), tmp_path / "missing", resume=True)


def test_a_run_that_is_at_work_cannot_be_resumed(tmp_path):
    folder = stopped(tmp_path, 6)
    refused = []

    class Meddling(Observer):
        """Resumes the run while it runs."""

        @hookimpl
        def celstack_run_started(self, folder):
            thread = threading.Thread(target=self.meddle, args=(folder,))
            thread.start()
            thread.join()

        def meddle(self, folder):
            try:
                run(make(), folder, resume=True)
            except CelstackError as error:
                refused.append(str(error))

    run(make(Meddling()), folder, resume=True)

    assert refused == [
        f"{folder}: this run is in use by another process; wait for it to finish, "
        "or stop it first"
    ]

import io

import pytest
import torch
from PIL import Image

from celstack.objective import Loss
from celstack.testing import check_observer
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack_kit.observers.tensorboard import Tensorboard

# TensorBoard's own imports use what newer versions of its dependencies deprecate.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def read(tmp_path):
    """Read what was written into the folder."""

    def load():
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path), size_guidance={"images": 0})
        return events.Reload()

    return load


@pytest.fixture
def decomposer():
    """A model with three sprites: the first red and transparent, the others red and opaque."""
    decomposer = plain_decomposer(PlainSelector())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    with torch.no_grad():
        red = torch.tensor([1.0, 0.0, 0.0, 1.0])
        decomposer.sprites.pixels[:] = red[:, None, None]
        decomposer.sprites.pixels[0, 3] = 0.0
    return decomposer


def take_steps(observer, steps):
    for step in range(1, steps + 1):
        loss = Loss(torch.tensor(0.5 * step), torch.tensor(0.25))
        observer.celstack_step_finished(step=step, loss=loss)


def points(events, tag):
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_it_keeps_the_promises_of_an_observer():
    check_observer(Tensorboard())


def test_the_loss_is_written_every_so_many_steps(tmp_path, read):
    observer = Tensorboard(every=2)
    observer.celstack_run_started(folder=tmp_path)

    take_steps(observer, 5)
    observer.celstack_run_finished()

    assert points(read(), "loss/total") == [(2, 1.25), (4, 2.25)]
    assert points(read(), "loss/reconstruction") == [(2, 1.0), (4, 2.0)]


def test_scores_are_written_by_name(tmp_path, read, decomposer):
    observer = Tensorboard()
    observer.celstack_run_started(folder=tmp_path)

    scores = {"ari": 0.75, "mse": 0.5}
    observer.celstack_evaluated(step=7, scores=scores, decomposer=decomposer)
    observer.celstack_run_finished()

    assert points(read(), "score/ari") == [(7, 0.75)]
    assert points(read(), "score/mse") == [(7, 0.5)]


def test_sprites_are_written_on_a_checkerboard(tmp_path, read, decomposer):
    observer = Tensorboard()
    observer.celstack_run_started(folder=tmp_path)

    observer.celstack_evaluated(step=7, scores={}, decomposer=decomposer)
    observer.celstack_run_finished()

    (event,) = read().Images("sprites")
    picture = Image.open(io.BytesIO(event.encoded_image_string)).convert("RGB")
    red, grey = (255, 0, 0), (191, 191, 191)
    colours = {colour for _, colour in picture.crop((0, 0, 4, 4)).getcolors()}
    assert event.step == 7
    assert colours == {grey}
    assert red in {colour for _, colour in picture.getcolors()}


def test_a_run_that_is_stopped_keeps_what_was_written(tmp_path, read):
    observer = Tensorboard(every=1)
    observer.celstack_run_started(folder=tmp_path)

    take_steps(observer, 1)
    observer.celstack_run_stopped()

    assert points(read(), "loss/total") == [(1, 0.75)]


def test_a_run_without_a_folder_writes_nothing(tmp_path, monkeypatch, decomposer):
    monkeypatch.chdir(tmp_path)
    observer = Tensorboard(every=1)
    observer.celstack_run_started(folder=None)

    take_steps(observer, 1)
    observer.celstack_evaluated(step=1, scores={"mse": 0.5}, decomposer=decomposer)
    observer.celstack_run_finished()

    assert list(tmp_path.iterdir()) == []


def test_it_is_no_matter_of_the_terminal():
    assert not Tensorboard.terminal

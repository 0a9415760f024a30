import io

import pytest
import torch
from PIL import Image

from celstack.evaluation.visualize import draw_examples
from celstack.model.objective import Loss
from celstack.recipe.assembly import Assembly, Evaluation, Stage
from celstack.scene import EMPTY, Scene
from celstack.testing import check_observer
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
)
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
def assembly():
    """Plain parts, with a background."""
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        backgrounds=PlainPrototype(1),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(steps=1)],
        evaluation=Evaluation(images=8),
    )


@pytest.fixture
def decomposer(assembly):
    """A model with three sprites: the first red and transparent, the others red and opaque."""
    decomposer = assembly.decomposer()
    decomposer.prepare(assembly.dataset.read("train", range(2)).images)
    with torch.no_grad():
        red = torch.tensor([1.0, 0.0, 0.0, 1.0])
        decomposer.sprites.pixels[:] = red[:, None, None]
        decomposer.sprites.pixels[0, 3] = 0.0
    return decomposer


@pytest.fixture
def start(assembly, decomposer, tmp_path):
    """Let an observer hear that a run begins, or goes on."""

    def begin(observer, step=0, folder=tmp_path):
        observer.celstack_run_started(
            assembly=assembly, decomposer=decomposer, folder=folder, step=step
        )
        return observer

    return begin


def scene_of(*sprites):
    """The scene of one image whose layers have these sprites."""
    nothing = torch.zeros(1, len(sprites), 0)
    occlusion = torch.zeros(1, len(sprites), len(sprites))
    return Scene(torch.tensor([sprites]), nothing, nothing, None, None, occlusion)


def take_steps(observer, steps, scene=None, after=0):
    for step in range(after + 1, steps + 1):
        loss = Loss(torch.tensor(0.5 * step), torch.tensor(0.25))
        rates = {"prototypes": 0.5**step}
        observer.celstack_step_finished(
            step=step, loss=loss, scene=scene or scene_of(0, 2), rates=rates
        )


def points(events, tag):
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_it_keeps_the_promises_of_an_observer():
    check_observer(Tensorboard())


def picture(events, tag, number=0):
    """Return one of the pictures of a name, and its step."""
    event = events.Images(tag)[number]
    return Image.open(io.BytesIO(event.encoded_image_string)).convert("RGB"), event.step


def test_the_loss_is_written_every_so_many_steps(start, read):
    observer = start(Tensorboard(every=2))

    take_steps(observer, 5)
    observer.celstack_run_finished()

    assert points(read(), "loss/total") == [(2, 1.25), (4, 2.25)]
    assert points(read(), "loss/reconstruction") == [(2, 1.0), (4, 2.0)]
    assert points(read(), "loss/sprites") == [(2, 0.25), (4, 0.25)]


def test_learning_rates_are_written(start, read):
    observer = start(Tensorboard(every=2))

    take_steps(observer, 4)
    observer.celstack_run_finished()

    assert points(read(), "rate/prototypes") == [(2, 0.25), (4, 0.0625)]


def test_the_usage_of_a_sprite_is_its_share_of_filled_layers_since_the_last_time(start, read):
    observer = start(Tensorboard(every=2))

    take_steps(observer, 2, scene_of(0, 2))
    take_steps(observer, 4, scene_of(2, EMPTY), after=2)
    observer.celstack_run_finished()

    assert points(read(), "usage/00") == [(2, 0.5), (4, 0.0)]
    assert points(read(), "usage/01") == [(2, 0.0), (4, 0.0)]
    assert points(read(), "usage/02") == [(2, 0.5), (4, 1.0)]


def test_usage_of_nothing_is_no_number_of_its_own(start, read):
    observer = start(Tensorboard(every=1))

    take_steps(observer, 1, scene_of(EMPTY))
    observer.celstack_run_finished()

    assert points(read(), "usage/00") == [(1, 0.0)]


def test_scores_are_written_by_name(start, read):
    observer = start(Tensorboard())

    observer.celstack_evaluated(step=7, scores={"ari": 0.75, "mse": 0.5})
    observer.celstack_run_finished()

    assert points(read(), "score/ari") == [(7, 0.75)]
    assert points(read(), "score/mse") == [(7, 0.5)]


def test_sprites_are_written_on_a_checkerboard(start, read):
    observer = start(Tensorboard())

    observer.celstack_evaluated(step=7, scores={})
    observer.celstack_run_finished()

    sprites, step = picture(read(), "sprites")
    red, grey = (255, 0, 0), (191, 191, 191)
    colours = {colour for _, colour in sprites.crop((0, 0, 4, 4)).getcolors()}
    assert step == 7
    assert colours == {grey}
    assert red in {colour for _, colour in sprites.getcolors()}


def test_masks_are_white_where_sprites_are_opaque(start, read, decomposer):
    observer = start(Tensorboard())

    observer.celstack_evaluated(step=7, scores={})
    observer.celstack_run_finished()

    masks, _ = picture(read(), "masks")
    area = decomposer.sprites.images()[0, 0].numel()
    colours = {colour: count for count, colour in masks.getcolors()}
    assert colours == {(0, 0, 0): area, (255, 255, 255): 2 * area}


def test_pictures_come_every_so_many_steps_and_at_the_end(start, read):
    observer = start(Tensorboard(pictures_every=2))

    take_steps(observer, 5)
    observer.celstack_evaluated(step=5, scores={})
    observer.celstack_run_finished()

    events = read()
    for tag in ("sprites", "masks", "backgrounds", "examples"):
        assert [event.step for event in events.Images(tag)] == [2, 4, 5], tag


def test_the_last_pictures_come_once(start, read):
    observer = start(Tensorboard(pictures_every=2))

    take_steps(observer, 2)
    observer.celstack_evaluated(step=2, scores={})
    observer.celstack_run_finished()

    assert [event.step for event in read().Images("examples")] == [2]


def test_examples_are_those_of_examples_png(start, read, assembly, decomposer):
    observer = start(Tensorboard())

    observer.celstack_evaluated(step=7, scores={})
    observer.celstack_run_finished()

    expected = draw_examples(decomposer, assembly).convert("RGB")
    assert list(picture(read(), "examples")[0].getdata()) == list(expected.getdata())


def test_the_recipe_is_text(start, read, tmp_path):
    (tmp_path / "resolved.toml").write_text("# mine\nseed = 3\n")

    start(Tensorboard()).celstack_run_finished()

    (event,) = read().Tensors("recipe/text_summary")
    assert event.tensor_proto.string_val[0].decode() == "    # mine\n    seed = 3\n"


def test_a_run_that_is_stopped_keeps_what_was_written(start, read):
    observer = start(Tensorboard(every=1))

    take_steps(observer, 1)
    observer.celstack_run_stopped()

    assert points(read(), "loss/total") == [(1, 0.75)]


def test_a_checkpoint_keeps_what_was_written(start, read):
    observer = start(Tensorboard(every=1))

    take_steps(observer, 1)
    observer.celstack_checkpoint_saved()

    # Read before the file is closed: the run may be killed.
    assert points(read(), "loss/total") == [(1, 0.75)]
    observer.celstack_run_stopped()


@pytest.mark.parametrize("after", [0, 2])
def test_a_run_that_goes_on_writes_nothing_twice(start, read, tmp_path, after):
    (tmp_path / "resolved.toml").write_text("seed = 3\n")
    first = start(Tensorboard(every=1))
    take_steps(first, 3)
    first.celstack_run_stopped()

    second = start(Tensorboard(every=1), step=after)
    take_steps(second, 4, after=after)
    second.celstack_run_finished()

    assert [step for step, _ in points(read(), "loss/total")] == [1, 2, 3, 4]
    assert len(read().Tensors("recipe/text_summary")) == 1


def test_a_run_without_a_folder_writes_nothing(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    observer = start(Tensorboard(every=1), folder=None)

    take_steps(observer, 1)
    observer.celstack_checkpoint_saved()
    observer.celstack_evaluated(step=1, scores={"mse": 0.5})
    observer.celstack_run_finished()

    assert list(tmp_path.iterdir()) == []


def test_it_is_no_matter_of_the_terminal():
    assert not Tensorboard.terminal

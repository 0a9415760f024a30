import json
import time
import tomllib

import pytest
import torch
from PIL import Image

from celstack.cli.output import printed_warnings
from celstack.errors import CelstackError, RunFailedError
from celstack.evaluation.visualize import draw_examples
from celstack.hookspecs import hookimpl
from celstack.interfaces.dataset import Batch
from celstack.interfaces.observer import Observer
from celstack.recipe.assembly import Assembly, Evaluation, Stage, Training, Transforms
from celstack.runs.directory import RunDirectory
from celstack.scene import Scene
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
from celstack.training.initialize import init_model
from celstack.training.loop import Trained, run
from celstack.training.optimizer import build_optimizer, set_learning_rates


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny tensors are slower on many threads, and the machine may be shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def directory(tmp_path):
    """A run directory that is closed in the end."""
    directory = RunDirectory.create(tmp_path / "runs", "mine", seed=0)
    yield directory
    directory.close()


class Diary(Observer):
    """Writes down what it hears, and may do something after a step."""

    def __init__(self, after_step=None):
        self.heard, self.losses, self.after_step = [], [], after_step

    @hookimpl
    def celstack_run_started(self, steps, decomposer):
        self.decomposer = decomposer
        self.heard.append(f"started: {steps}")

    @hookimpl
    def celstack_phase_started(self, phase, step):
        self.heard.append(f"{phase.title} at {step}")

    @hookimpl
    def celstack_step_finished(self, step, loss, images):
        self.heard.append(f"step {step} of {images}")
        self.losses.append(loss.total.item())
        if self.after_step:
            self.after_step(step)

    @hookimpl
    def celstack_evaluated(self, step):
        self.heard.append(f"evaluated at {step}")

    @hookimpl
    def celstack_run_finished(self):
        self.heard.append("finished")

    @hookimpl
    def celstack_run_stopped(self, step, reason):
        self.heard.append(f"stopped at {step}: {reason}")


class Spoilt(PlainDataset):
    """Has one training image that is not a number."""

    def read(self, split, indices):
        batch = super().read(split, indices)
        spoilt = torch.tensor([split == "train" and index == 5 for index in indices])
        return Batch(batch.images.masked_fill(spoilt[:, None, None, None], float("nan")))


class Seeing(PlainPredictor):
    """Has an encoder among its parts."""

    def __init__(self):
        super().__init__()
        self.encoder = PlainEncoder()

    def prepare(self, outline):
        super().prepare(outline)
        self.encoder.prepare(outline.image_shape)


def make(*stages, **changes):
    """Put plain parts together, for few steps; 16 images make four batches."""
    parts = {
        "dataset": PlainDataset(),
        "sprites": PlainPrototype(),
        "compositor": PlainCompositor(),
        "selector": PlainSelector(empty_cost=None),
        "predictor": PlainPredictor(),
        "transforms": Transforms(sprite=[PlainWarp()], layer=[PlainTransform()]),
        "stages": list(stages) or [Stage(steps=3)],
        "training": Training(batch_size=4, prototype_rate=0.02, head_rate=0.02),
        "evaluation": Evaluation(images=8),
        "metrics": [PlainMetric()],
    }
    return Assembly(**{**parts, **changes})


def weights(trained):
    return {name: value.clone() for name, value in trained.decomposer.state_dict().items()}


def sprites_before(assembly):
    with torch.random.fork_rng(devices=[]):
        return init_model(assembly).sprites.pixels.detach().clone()


def moved(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_two_runs_with_one_seed_agree_bit_for_bit():
    diaries = [Diary(), Diary()]
    runs = [run(make(seed=5, observers=[diary])) for diary in diaries]

    assert moved(weights(runs[0]), weights(runs[1])) == set()
    assert diaries[0].losses == diaries[1].losses
    assert runs[0].scores == runs[1].scores


def test_a_run_does_not_depend_on_what_was_drawn_before():
    first = weights(run(make(seed=5)))
    torch.rand(7)

    assert moved(first, weights(run(make(seed=5)))) == set()


def test_an_assembly_can_be_run_again_from_the_start():
    assembly = make(seed=5)
    first = weights(run(assembly))

    assert moved(first, weights(run(assembly))) == set()


def test_another_seed_is_another_run():
    first, second = (Diary(), Diary())
    run(make(seed=5, observers=[first]))
    run(make(seed=6, observers=[second]))

    assert not set(first.losses) & set(second.losses)


def test_the_loss_falls():
    diary = Diary()

    run(make(Stage(steps=40), observers=[diary]))

    assert sum(diary.losses[-4:]) < 0.7 * sum(diary.losses[:4])


def test_observers_hear_the_whole_story_in_order():
    diary = Diary()
    stages = [Stage(steps=1), Stage(name="long", epochs=1)]
    training = Training(batch_size=6)

    run(make(*stages, training=training, observers=[diary]))

    assert diary.heard == [
        "started: 4",
        "stage 1 at 0",
        "step 1 of 6",
        "long at 1",
        "step 2 of 6",
        "step 3 of 4",
        "step 4 of 6",
        "evaluated at 4",
        "finished",
    ]


def test_what_remains_is_a_model_in_eval_mode_with_its_scores():
    trained = run(make())

    assert not trained.decomposer.training
    assert trained.scores.keys() == {"plain_metric"}


def test_sprites_move():
    assembly = make()
    before = sprites_before(assembly)

    after = run(assembly).decomposer.sprites.pixels

    assert not torch.equal(after, before)


def test_frozen_sprites_do_not_move_and_the_rest_does():
    assembly = make(Stage(steps=3, freeze_sprites=True))
    before = sprites_before(assembly)

    decomposer = run(assembly).decomposer

    assert torch.equal(decomposer.sprites.pixels, before)
    assert decomposer.predictor.layer.abs().sum() > 0


def test_sprites_frozen_after_they_moved_do_not_drift_on():
    seen = []
    stages = [Stage(steps=2), Stage(steps=2, freeze_sprites=True)]
    assembly = make(*stages)
    diary = Diary(lambda step: seen.append(diary.decomposer.sprites.pixels.detach().clone()))
    assembly.observers.append(diary)

    run(assembly)

    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[1], seen[2])
    assert torch.equal(seen[2], seen[3])


def test_sprites_thaw_with_the_next_stage():
    assembly = make(Stage(steps=2, freeze_sprites=True), Stage(steps=1))
    before = sprites_before(assembly)

    assert not torch.equal(run(assembly).decomposer.sprites.pixels, before)


def test_prototypes_encoder_and_heads_have_rates_of_their_own():
    training = Training(prototype_rate=0.1, encoder_rate=0.2, head_rate=0.3, weight_decay=0.5)

    optimizer = build_optimizer(init_model(make(predictor=Seeing())), training)

    groups = [(g["name"], g["lr"], g["weight_decay"]) for g in optimizer.param_groups]
    assert groups == [("prototypes", 0.1, 0), ("encoder", 0.2, 0.5), ("heads", 0.3, 0.5)]


@pytest.mark.parametrize(("decay", "left"), [("decoupled", 0.9), ("coupled", 0.7)])
def test_decay_moves_what_has_a_gradient_of_zero(decay, left):
    """Decoupled it shrinks weights by rate times decay; coupled it is a step of full rate."""
    training = Training(encoder_rate=0.2, head_rate=0.3, weight_decay=1 / 3, decay=decay)
    decomposer = init_model(make())
    optimizer = build_optimizer(decomposer, training)
    head = decomposer.predictor.layer
    with torch.no_grad():
        head.fill_(1.0)
    head.grad = torch.zeros_like(head)

    optimizer.step()

    torch.testing.assert_close(head, torch.full_like(head, left), atol=1e-5, rtol=0)


def test_every_parameter_is_in_one_group_and_in_its_own():
    decomposer = init_model(make(predictor=Seeing(), backgrounds=PlainPrototype(1)))

    optimizer = build_optimizer(decomposer, Training())

    names = {id(value): name for name, value in decomposer.named_parameters()}
    found = {g["name"]: [names.pop(id(p)) for p in g["params"]] for g in optimizer.param_groups}
    assert names == {}
    assert found["prototypes"] == ["sprites.pixels", "backgrounds.pixels"]
    encoder = "predictor.encoder.linear"
    assert found["encoder"] == [f"{encoder}.weight", f"{encoder}.bias"]


def test_a_stages_factors_set_the_learning_rates():
    training = Training(prototype_rate=0.1, encoder_rate=0.2, head_rate=0.3)
    decomposer = init_model(make(predictor=Seeing()))
    optimizer = build_optimizer(decomposer, training)

    # Factors are of the first rates, not of those of the stage before.
    for _ in range(2):
        stage = Stage(steps=1, prototype_factor=0.5, network_factor=0.1)
        set_learning_rates(optimizer, stage)

    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.05, 0.02, 0.03])


def test_a_factor_of_zero_holds_the_networks_and_lets_sprites_move():
    assembly = make(Stage(steps=2, network_factor=0.0))
    before = sprites_before(assembly)

    decomposer = run(assembly).decomposer

    assert decomposer.predictor.layer.abs().sum() == 0
    assert not torch.equal(decomposer.sprites.pixels, before)


@pytest.mark.parametrize("active", ["plain_warp", "plain_transform"])
def test_inactive_transforms_stay_at_rest(active):
    predictor = run(make(Stage(steps=3, transforms=[active]))).decomposer.predictor

    params = {"plain_warp": predictor.sprite, "plain_transform": predictor.layer}
    learned = {name for name, values in params.items() if values.abs().sum() > 0}
    assert learned == {active}


def test_a_stage_that_names_no_transforms_lets_all_of_them_work():
    stages = [Stage(steps=2, transforms=[]), Stage(steps=2)]

    predictor = run(make(*stages)).decomposer.predictor

    assert predictor.sprite.abs().sum() > 0
    assert predictor.layer.abs().sum() > 0


class Computing(PlainSelector):
    """Needs no predictor: puts the first sprite on every layer, a little to the right."""

    def check(self, decomposer):
        pass

    def explain(self, images, decomposer, noise, allow_empty):
        shape = (len(images), decomposer.compositor.layers)
        return Scene(
            sprite=torch.zeros(shape, dtype=torch.int64),
            sprite_params=torch.tensor([0.3, 0.0]).repeat(*shape, 1),
            layer_params=torch.zeros(*shape, 1),
            occlusion=torch.ones(shape[0], shape[1], shape[1]).tril(-1),
        )


def selectors_at_work(assembly):
    """Name the selector of every step, and of the model that remains."""
    seen = []
    diary = Diary(lambda step: seen.append(diary.decomposer.selector.name))
    assembly.observers.append(diary)
    return [seen, run(assembly).decomposer.selector.name]


def test_a_stage_explains_with_its_own_selector_and_the_next_with_the_recipes():
    stages = [Stage(steps=1, selector=Computing()), Stage(steps=2)]

    assert selectors_at_work(make(*stages)) == [
        ["computing", "plain_selector", "plain_selector"],
        "plain_selector",
    ]


def test_the_selector_of_the_last_stage_remains():
    stages = [Stage(steps=1), Stage(steps=1, selector=Computing())]

    assert selectors_at_work(make(*stages)) == [["plain_selector", "computing"], "computing"]


def test_the_selectors_of_stages_are_copied_as_all_parts_are():
    own = Computing()

    assert run(make(Stage(steps=1, selector=own))).decomposer.selector is not own


def test_what_is_taught_is_learned_and_all_else_rests():
    # As often as in every step, sprites that are not used would start again.
    training = Training(batch_size=4, head_rate=0.05, reassign_every=1)
    parts = {"backgrounds": PlainPrototype(1), "training": training}
    assembly = make(Stage(steps=40, teacher=Backed()), **parts)
    with torch.random.fork_rng(devices=[]):
        before = weights(Trained(init_model(assembly), {}, None))

    decomposer = run(assembly).decomposer

    assert moved(before, decomposer.state_dict()) == {"predictor.sprite"}
    images = assembly.dataset.read("test", range(4)).images
    said = decomposer.predict(images).sprite_params[:, :, 0]
    torch.testing.assert_close(said, torch.tensor([0.3, 0.0]).expand_as(said), atol=0.1, rtol=0)


class Backed(Computing):
    """Computes the same in front of a background."""

    def explain(self, *arguments):
        scene = super().explain(*arguments)
        first = scene.sprite[:, 0]
        return scene.evolve(background=first, background_params=torch.zeros(len(first), 0))


def test_the_log_tells_of_teaching_in_the_stages_that_have_a_teacher(directory):
    run(make(Stage(steps=1, teacher=Computing()), Stage(steps=1)), directory)

    text = (directory.folder / "log.jsonl").read_text()
    steps = [json.loads(line) for line in text.splitlines() if "loss" in line]
    assert ["teaching" in step for step in steps] == [True, False]
    assert steps[0]["teaching"] > 0


def test_the_checkpoint_knows_its_stage(directory):
    def interrupt(step):
        if step == 3:
            raise KeyboardInterrupt

    stages = [Stage(steps=2), Stage(steps=2), Stage(steps=2)]
    with pytest.raises(KeyboardInterrupt):
        run(make(*stages, observers=[Diary(interrupt)]), directory)

    assert torch.load(directory.folder / "checkpoint.pt", weights_only=True)["stage"] == 2


def test_an_image_that_is_not_a_number_stops_the_run_and_the_term_is_named():
    diary = Diary()

    with pytest.raises(RunFailedError) as failed:
        run(make(Stage(epochs=1), dataset=Spoilt(), metrics=[], observers=[diary]))

    step = len(diary.losses) + 1
    said = f"step {step}: the loss is nan in its term 'reconstruction'"
    assert str(failed.value).startswith(said)
    assert diary.heard[-1].startswith("stopped at ")
    assert diary.heard[-1].endswith(str(failed.value))


class Bright(PlainDataset):
    """Has values up to 255 in one split."""

    def __init__(self, split):
        self.split = split

    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images * (255 if split == self.split else 1))


@pytest.mark.parametrize("split", ["train", "test"])
def test_images_are_checked_before_anything_is_written(tmp_path, split):
    diary = Diary()

    with pytest.raises(CelstackError, match=f"bright: the first images of '{split}': images"):
        run(make(dataset=Bright(split), observers=[diary]), tmp_path)

    assert diary.heard == []
    assert list(tmp_path.iterdir()) == []


class Broken(PlainMetric):
    """Fails when all has been learned."""

    def compute(self):
        raise ValueError("no way")


@pytest.mark.parametrize("resume", [False, True])
def test_a_metric_that_fails_costs_only_itself(directory, caplog, resume):
    def interrupt(step):
        raise KeyboardInterrupt

    metrics = [PlainMetric(), Broken()]
    if resume:
        with pytest.raises(KeyboardInterrupt):
            run(make(metrics=metrics, observers=[Diary(interrupt)]), directory)

    scores = run(make(metrics=metrics), directory, resume=resume).scores

    folder = directory.folder
    assert list(scores) == ["plain_metric"]
    assert json.loads((folder / "metrics.json").read_text()) == scores
    reason = "it failed in compute: ValueError: no way"
    assert json.loads((folder / "evaluation.json").read_text())["failed"] == {"broken": reason}
    told = [message for message in caplog.messages if message.startswith("metric")]
    assert told == [
        f"metric broken has no score: {reason}; when it is mended, evaluate again with: "
        f"celstack evaluate {folder}"
    ]


def spoilt_run(directory):
    """Run until the spoilt image comes, in the second step."""
    diary = Diary()
    with pytest.raises(RunFailedError):
        run(
            make(Stage(epochs=1), dataset=Spoilt(), metrics=[], observers=[diary]),
            directory,
        )
    assert len(diary.losses) == 1
    return torch.load(directory.folder / "checkpoint.pt", weights_only=True)


def test_a_run_that_failed_keeps_its_checkpoint(directory):
    assert spoilt_run(directory)["step"] >= 1


def test_the_checkpoint_of_a_run_that_failed_holds_numbers(directory):
    state = spoilt_run(directory)

    assert all(value.isfinite().all() for value in state["model"].values())


def test_an_interruption_saves_the_checkpoint(directory):
    def interrupt(step):
        if step == 2:
            raise KeyboardInterrupt

    diary = Diary(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(make(observers=[diary]), directory)

    state = torch.load(directory.folder / "checkpoint.pt", weights_only=True)
    assert state["step"] == 2
    assert diary.heard[-1] == "stopped at 2: interrupted"


def test_an_observer_that_fails_does_not_stop_the_run(capsys):
    def fail(step):
        raise ValueError("no")

    other = Diary()
    with printed_warnings():
        run(make(observers=[Diary(fail), other]))

    assert other.heard[-1] == "finished"
    assert capsys.readouterr().err.count("observer Diary failed") == 1


def test_a_run_goes_on_in_training_mode_after_explaining_failed_in_an_observer(monkeypatch):
    def draw(step):
        def fail(*_):
            raise ValueError("no")

        with monkeypatch.context() as patch:
            patch.setattr(drawing.decomposer, "explain", fail)
            draw_examples(drawing.decomposer, assembly)

    drawing, modes = Diary(draw), []
    other = Diary(lambda _: modes.append(other.decomposer.training))
    assembly = make(observers=[drawing, other])

    run(assembly)

    assert modes == [True] * 3


def test_observers_do_not_change_the_run():
    quiet = weights(run(make()))

    assert moved(quiet, weights(run(make(observers=[Diary()])))) == set()


def test_a_run_without_directory_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    trained = run(make())

    assert trained.folder is None
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_a_directory_does_not_change_the_run(directory):
    assert moved(weights(run(make())), weights(run(make(), directory))) == set()


def test_a_run_directory_holds_what_was_learned(directory):
    trained = run(make(), directory)

    folder = directory.folder
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    sprites = {f"sprites/0{number}.png" for number in range(3)}
    scores = {"metrics.json", "scores.json", "evaluation.json", "census.json"}
    kept = {".lock", "log.jsonl", "checkpoint.pt", "examples.png", "best.png"}
    examples = {name for name in files if name.startswith("examples/")}
    recipe = {"recipe.toml", "resolved.toml", "environment.json"}
    assert files - examples == {*kept, *scores, *sprites, *recipe}
    assert len(examples) > 0
    assert trained.folder == folder
    assert json.loads((folder / "metrics.json").read_text()) == trained.scores


def test_the_log_has_the_loss_of_every_step(directory):
    diary = Diary()

    run(make(Stage(steps=2), Stage(steps=1), observers=[diary]), directory)

    text = (directory.folder / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    steps = [line for line in lines if "loss" in line]
    assert [line["step"] for line in steps] == [1, 2, 3]
    assert [line["stage"] for line in steps] == ["stage 1", "stage 1", "stage 2"]
    assert [line["loss"] for line in steps] == diary.losses


def test_the_log_says_when_each_stage_begins(directory):
    run(make(Stage(steps=2, name="placing"), Stage(steps=1)), directory)

    text = (directory.folder / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    begun = [(line["step"], line["begins"]) for line in lines if "begins" in line]
    assert begun == [(0, "placing"), (2, "stage 2")]


def test_the_log_tells_the_usage_of_every_tenth_step_and_when_it_was(directory):
    before = time.time()

    run(make(Stage(steps=21)), directory)

    text = (directory.folder / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    told = [line for line in lines if "usage" in line]
    assert [line["step"] for line in told] == [10, 20]
    assert [len(line["usage"]) for line in told] == [3, 3]
    assert all(sum(line["usage"]) > 0 for line in told)
    assert before - 1 <= told[0]["time"] <= told[1]["time"] <= time.time() + 1


def test_the_checkpoint_holds_the_model_that_was_scored(directory):
    trained = run(make(), directory)

    state = torch.load(directory.folder / "checkpoint.pt", weights_only=True)
    assert state["step"] == 3
    assert moved(state["model"], weights(trained)) == set()


def test_sprites_are_saved_as_they_were_learned(directory):
    trained = run(make(), directory)

    picture = Image.open(directory.folder / "sprites" / "02.png")
    alpha = trained.decomposer.sprites.pixels[2, 3].detach().clamp(0, 1)
    assert picture.mode == "RGBA"
    assert picture.getpixel((4, 1))[3] == round(255 * alpha[1, 4].item())


def test_a_recipe_run_by_command_leaves_everything_in_its_folder(command, small, tmp_path):
    ended = command("run-recipe", small, "--out", str(tmp_path / "runs"), "--device", "cpu")

    assert ended.code in (0, None), ended.complaint
    (folder,) = (tmp_path / "runs" / "my").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "recipe.toml",
        "resolved.toml",
        "environment.json",
        "log.jsonl",
        "checkpoint.pt",
        "metrics.json",
        "sprites",
        "examples.png",
    }
    assert not any(name.endswith(".tmp") for name in names)
    assert tomllib.loads((folder / "resolved.toml").read_text("utf-8"))["seed"] == 0

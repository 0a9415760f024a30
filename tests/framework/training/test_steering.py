"""Observers end training and change rates; evaluation during training changes nothing."""

import json
import shutil

import numpy as np
import pytest
import torch

from celstack import StopTraining
from celstack.cli.output import printed_warnings
from celstack.errors import CelstackError, RunFailedError
from celstack.hookspecs import hookimpl
from celstack.interfaces.metric import Metric
from celstack.interfaces.observer import Observer
from celstack.recipe.assembly import (
    Assembly,
    Evaluation,
    Stage,
    Training,
    Transforms,
    Validation,
)
from celstack.recipe.consistency import check_consistency
from celstack.runs.directory import RunDirectory
from celstack.testing.model import PlainSelector
from celstack.testing.observers import check_observer
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainMetric,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)
from celstack.training.distributed.process_group import ProcessGroup
from celstack.training.loop import run


class Diary(Observer):
    """Writes down what it hears."""

    def __init__(self):
        self.heard, self.rates, self.scores = [], [], []

    @hookimpl
    def celstack_step_finished(self, step, rates):
        self.heard.append(f"step {step}")
        self.rates.append(dict(rates))

    @hookimpl
    def celstack_validated(self, step, scores):
        self.heard.append(f"validated {step}")
        self.scores.append(dict(scores))

    @hookimpl
    def celstack_training_ended(self, step, reason):
        self.heard.append(f"ended {step}: {reason}")

    @hookimpl
    def celstack_evaluated(self, step):
        self.heard.append(f"evaluated {step}")

    @hookimpl
    def celstack_run_finished(self):
        self.heard.append("finished")

    @hookimpl
    def celstack_run_stopped(self, reason):
        self.heard.append(f"stopped: {reason}")


class Enough(Observer):
    """Has seen enough after a step."""

    def __init__(self, after=2, reason="it is\nenough"):
        self.after, self.reason = after, reason

    @hookimpl
    def celstack_step_finished(self, step):
        if step == self.after:
            raise StopTraining(self.reason)


class Rates(Observer):
    """Changes rates by a function of its arguments."""

    def __init__(self, change):
        self.change, self.seen = change, []

    @hookimpl
    def celstack_step_started(self, step, rates, validations):
        self.seen.append((step, dict(rates), [one.step for one in validations]))
        return self.change(step, rates)


class Interrupting(Observer):
    """Presses Ctrl-C when it hears of something."""

    @hookimpl
    def celstack_evaluated(self):
        raise KeyboardInterrupt


class Told(Metric):
    """Gives the scores that it is told to give, one after the other."""

    scores_to_give: list = []
    percent = True

    def __init__(self, *scores):
        type(self).scores_to_give = list(scores)

    def reset(self):
        pass

    def update(self, scene, rendering, batch):
        torch.rand(3)  # draws from torch's random state, as a part should not

    def compute(self):
        return type(self).scores_to_give.pop(0)


class Shrinking(Told):
    """The same for an error, of which less is better."""

    percent = False


def make(*observers, stages=None, **changes):
    parts = {
        "dataset": PlainDataset(),
        "sprites": PlainPrototype(),
        "compositor": PlainCompositor(),
        "selector": PlainSelector(empty_cost=None),
        "predictor": PlainPredictor(),
        "transforms": Transforms(sprite=[PlainWarp()], layer=[PlainTransform()]),
        "stages": stages or [Stage(steps=6)],
        "training": Training(batch_size=4, prototype_rate=0.02, head_rate=0.02),
        "evaluation": Evaluation(images=8),
        "metrics": [PlainMetric()],
    }
    return Assembly(**{**parts, **changes}, observers=list(observers))


def log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same_weights(one, other):
    left, right = one.decomposer.state_dict(), other.decomposer.state_dict()
    return all(torch.equal(left[name], right[name]) for name in left)


@pytest.fixture
def directory(tmp_path):
    directory = RunDirectory.create(tmp_path / "runs", "mine", seed=0)
    yield directory
    directory.close()


def test_an_observer_ends_training_with_a_reason(directory):
    diary = Diary()

    trained = run(make(diary, Enough()), directory)

    assert trained.ended == "it is enough"
    ends = ["ended 2: it is enough", "evaluated 2", "finished"]
    assert diary.heard == ["step 1", "step 2", *ends]
    assert [line["ended"] for line in log(directory.folder) if "ended" in line] == [
        "it is enough"
    ]
    assert (directory.folder / "metrics.json").is_file()


def test_a_run_that_nobody_ends_has_no_reason():
    assert run(make()).ended == ""


def test_the_stages_that_follow_are_left_out():
    diary = Diary()
    stages = [Stage(steps=2, freeze_sprites=True), Stage(steps=4)]

    trained = run(make(diary, Enough(after=2), stages=stages))

    assert trained.ended
    assert trained.decomposer.sprites_frozen
    assert "step 3" not in diary.heard


@pytest.mark.parametrize("after", [1, 2])
def test_a_run_that_has_ended_and_is_resumed_does_not_go_on(directory, after, tmp_path):
    """Also where it ended with the last step of a stage: that stage stays in force."""
    stages = [
        Stage(steps=2, freeze_sprites=True, selector=PlainSelector(empty_cost=None)),
        Stage(steps=4),
    ]
    whole = run(make(Enough(after), stages=stages))
    with pytest.raises(KeyboardInterrupt):
        run(make(Enough(after), Interrupting(), stages=stages), directory)
    diary = Diary()

    trained = run(make(diary, stages=stages), directory, resume=True)

    assert diary.heard == [f"evaluated {after}", "finished"]
    assert trained.ended == "it is enough"
    assert trained.decomposer.sprites_frozen
    assert trained.decomposer.selector is not trained.decomposer.own_selector
    assert same_weights(trained, whole)


def test_rates_are_seen_and_changed_before_each_step():
    diary, rates = Diary(), Rates(lambda step, rates: {"heads": rates["heads"] / step})
    stages = [Stage(steps=3, warmup=1)]

    run(make(diary, rates, stages=stages))

    scheduled = [{"prototypes": r, "heads": r} for r in (0.01, 0.02, 0.02)]
    # Always those of the schedule: what was changed before does not add up.
    assert [seen for _, seen, _ in rates.seen] == scheduled
    assert [step for step, *_ in rates.seen] == [1, 2, 3]
    heads = [0.01, 0.01, 0.02 / 3]
    assert [used["heads"] for used in diary.rates] == pytest.approx(heads)
    assert [used["prototypes"] for used in diary.rates] == [0.01, 0.02, 0.02]


def test_the_rates_that_are_changed_are_those_of_the_step():
    still = Rates(lambda step, rates: dict.fromkeys(rates, 0.0))
    first = run(make(stages=[Stage(steps=1, prototype_factor=0, network_factor=0)]))

    assert same_weights(run(make(still)), first)


def test_one_observer_changes_what_the_other_has_changed():
    halve = Rates(lambda step, rates: {n: r / 2 for n, r in rates.items()})
    diary = Diary()

    run(make(diary, halve, Rates(halve.change), stages=[Stage(steps=1)]))

    assert diary.rates == [{"prototypes": 0.005, "heads": 0.005}]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"hands": 1.0}, "there is no group 'hands', but prototypes, heads"),
        ({"heads": -1.0}, "heads: a rate is 0 or more, not -1.0"),
        ({"heads": float("nan")}, "heads: a rate is 0 or more, not nan"),
        (0.1, "rates are a mapping or None, not 0.1"),
    ],
)
def test_an_observer_that_returns_no_rates_is_dropped(given, text, capsys):
    diary, wrong = Diary(), Rates(lambda step, rates: given)

    with printed_warnings():
        run(make(diary, wrong, stages=[Stage(steps=2)]))

    assert len(wrong.seen) == 1
    assert text in capsys.readouterr().err
    assert diary.rates == [{"prototypes": 0.02, "heads": 0.02}] * 2
    with pytest.raises(AssertionError, match="it does not fail, but in celstack_step_started"):
        check_observer(wrong)


def test_observers_that_steer_keep_the_laws():
    check_observer(Enough(after=1))
    check_observer(Rates(lambda step, rates: {"heads": 0.1}))


def test_a_run_is_evaluated_every_few_steps(directory):
    diary, rates = Diary(), Rates(lambda step, rates: None)

    run(make(diary, rates, validation=Validation(every=2, images=8)), directory)

    validated = [event for event in diary.heard if event.startswith("validated")]
    # The last step is evaluated in any case.
    assert validated == ["validated 2", "validated 4"]
    logged = [line["validation"] for line in log(directory.folder) if "validation" in line]
    assert logged == diary.scores
    assert rates.seen[-1][-1] == [2, 4]


def test_evaluation_during_training_does_not_affect_it(directory):
    told = Told(*[0.5] * 9)
    noise = Training(batch_size=4, mask_noise=0.4)

    watched = run(make(validation=Validation(every=1), metrics=[told], training=noise))

    assert same_weights(watched, run(make(training=noise)))


@pytest.mark.parametrize(
    ("metric", "scores", "last"),
    [
        (Told, [0.1, 0.3, 0.2, 0.3, 0.9, 0.9], 4),
        (Told, [0.3, 0.2, 0.4, 0.3, 0.2, 0.9], 5),
        (Shrinking, [0.3, 0.3, 0.3, 0.1, 0.1, 0.1], 3),
        (Shrinking, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 6),
        (Told, [float("nan"), float("nan"), 0.4, 0.3, 0.2, 0.9], 2),
    ],
)
def test_training_ends_when_a_score_does_not_improve(metric, scores, last):
    diary, metrics = Diary(), [metric(*scores)]
    validation = Validation(every=1, stop_on=metrics[0].name, patience=2)

    trained = run(make(diary, validation=validation, metrics=metrics))

    assert f"evaluated {last}" in diary.heard
    assert bool(trained.ended) == (last < 6)


def test_the_reason_says_what_was_best_and_when():
    metrics = [Told(0.1, 0.3, 0.2, 0.3, 0.9)]

    trained = run(
        make(validation=Validation(every=1, stop_on="told", patience=2), metrics=metrics)
    )

    said = "told has not improved in 2 evaluations; its best is 0.3 after step 2"
    assert trained.ended == said


def test_stages_before_the_last_are_completed():
    stages = [Stage(steps=3, freeze_sprites=True), Stage(steps=3)]
    diary, metrics = Diary(), [Told(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)]

    run(
        make(
            diary,
            stages=stages,
            validation=Validation(every=1, stop_on="told", patience=1),
            metrics=metrics,
        )
    )

    assert "ended 5: told has not improved in 1 evaluations; its best is 0.6 after step 4" in (
        diary.heard
    )


def test_a_run_that_is_stopped_while_it_is_evaluated_ends_as_the_whole_one(directory, tmp_path):
    """Stopped during the evaluation after the last step of its first stage."""

    class Pressing(PlainMetric):
        name = "plain_metric"
        presses = 0

        def compute(self):
            type(self).presses -= 1
            if type(self).presses == 0:
                raise KeyboardInterrupt
            return super().compute()

    def assembly(diary):
        stages = [Stage(steps=2, freeze_sprites=True), Stage(steps=4)]
        validation = Validation(every=1, stop_on="plain_metric", patience=3)
        return make(diary, stages=stages, validation=validation, metrics=[Pressing()])

    whole, rest = Diary(), Diary()
    expected = run(assembly(whole))
    Pressing.presses = 2
    with pytest.raises(KeyboardInterrupt):
        run(assembly(Diary()), directory)

    trained = run(assembly(rest), directory, resume=True)

    assert rest.heard[0] == "validated 2"
    assert rest.scores == whole.scores[1:]
    assert rest.heard == whole.heard[whole.heard.index("validated 2") :]
    assert trained.ended == expected.ended
    assert same_weights(trained, expected)


@pytest.mark.parametrize("by_score", [True, False])
def test_one_that_is_stopped_in_the_evaluation_of_its_last_step_ends(directory, by_score):
    class Flat(Told):
        presses = 0

        def __init__(self):
            super().__init__()

        def compute(self):
            type(self).presses -= 1
            if type(self).presses == 0:
                raise KeyboardInterrupt
            return 0.5

    def assembly(diary):
        validation = Validation(every=2, stop_on="flat", patience=1 if by_score else 5)
        own = [] if by_score else [Enough(after=4)]
        return make(diary, *own, validation=validation, metrics=[Flat()])

    whole, rest = Diary(), Diary()
    expected = run(assembly(whole))
    Flat.presses = 2
    with pytest.raises(KeyboardInterrupt):
        run(assembly(Diary()), directory)

    trained = run(assembly(rest), directory, resume=True)

    assert whole.heard[-4].startswith("validated 4")
    assert rest.heard == whole.heard[-4:]
    assert trained.ended == expected.ended
    assert same_weights(trained, expected)


def test_a_score_that_the_images_cannot_give_is_told():
    class Blind(PlainDataset):
        def read(self, split, indices):
            batch = super().read(split, indices)
            return type(batch)(batch.images)

    validation = Validation(every=1, stop_on="plain_metric")

    with pytest.raises(RunFailedError, match=r"validation\.stop_on: plain_metric has no score"):
        run(make(dataset=Blind(), validation=validation))


@pytest.mark.parametrize(
    ("validation", "place", "text"),
    [
        (
            Validation(every=1, stop_on="plain_metrics"),
            "stop_on",
            "did you mean 'plain_metric'",
        ),
        (Validation(stop_on="plain_metric"), "stop_on", "set validation.every"),
        (Validation(every=1, split="dev"), "split", "only the splits train, test"),
    ],
)
def test_settings_that_make_no_sense_are_told(validation, place, text):
    (problem,) = check_consistency(make(validation=validation))

    assert problem.place == f"validation.{place}"
    assert text in problem.text


@pytest.mark.parametrize("damage", [{"validations": 3}, {"validations": [{}]}, {"ended": 1}])
def test_a_damaged_checkpoint_is_refused_in_a_line(directory, damage):
    run(make(), directory)
    path = directory.folder / "checkpoint.pt"
    torch.save({**torch.load(path, weights_only=True), **damage}, path)

    with pytest.raises(CelstackError, match="cannot resume: missing or invalid"):
        run(make(), directory, resume=True)


def test_a_recipe_can_say_so(command, small, tmp_path):
    out = str(tmp_path / "runs")
    said = ["stages=[{ steps = 9 }]", "validation.every=2", "validation.images=4"]
    said += ["validation.stop_on='mse'", "validation.patience=1", "observers=['progress']"]
    said += ["training.prototype_rate=1e-30", "training.head_rate=1e-30"]
    said += ["training.encoder_rate=1e-30"]
    options = [word for text in said for word in ("--set", text)]

    answer = command("run-recipe", small, "--out", out, "--device", "cpu", *options)

    assert answer.code == 0, answer.complaint
    ended = "step 4: training ended early: mse has not improved in 1 evaluations; its best is"
    assert ended in answer.complaint
    (folder,) = (tmp_path / "runs" / "my").iterdir()
    shutil.rmtree(folder / "sprites")
    page = command("celstack", "report", str(folder))
    assert page.code == 0
    assert (
        "4; training ended early: mse has not improved" in (folder / "report.html").read_text()
    )


class Killed(BaseException):
    """The process is killed: nothing is saved any more."""


class Pressing(Observer):
    """Presses Ctrl-C, once, when it hears of a step or a checkpoint."""

    def __init__(self, hook, step):
        self.hook, self.step = hook, step

    def press(self, hook, step):
        if (hook, step) == (self.hook, self.step):
            raise KeyboardInterrupt

    @hookimpl
    def celstack_step_started(self, step):
        self.press("step_started", step)

    @hookimpl
    def celstack_step_finished(self, step):
        self.press("step_finished", step)

    @hookimpl
    def celstack_validated(self, step):
        self.press("validated", step)

    @hookimpl
    def celstack_checkpoint_saved(self, step):
        self.press("checkpoint_saved", step)

    @hookimpl
    def celstack_training_ended(self, step):
        self.press("training_ended", step)


class Asking(Pressing):
    """Asks for the end instead."""

    def press(self, hook, step):
        if (hook, step) == (self.hook, self.step):
            raise StopTraining("it is enough")


def ends(folder):
    return [line["ended"] for line in log(folder) if "ended" in line]


@pytest.mark.parametrize(("hook", "saves"), [("validated", 1), ("checkpoint_saved", 2)])
def test_a_run_that_is_killed_as_it_ends_has_ended(directory, monkeypatch, saves, hook):
    """Killed after a checkpoint of the step after which an observer asks for the end."""
    save, left = RunDirectory.save_checkpoint, [saves]

    def killed(self, state):
        save(self, state)
        left[0] -= state["step"] == 2
        if not left[0]:
            raise Killed

    def assembly(diary):
        training = Training(batch_size=4, checkpoint_every=2)
        validation = Validation(every=2, images=4)
        return make(diary, Asking(hook, 2), training=training, validation=validation)

    monkeypatch.setattr(RunDirectory, "save_checkpoint", killed)
    monkeypatch.setattr("celstack.training.run_state.RunState.save_on_exit", lambda *_: None)
    diary = Diary()
    with pytest.raises(Killed):
        run(assembly(diary), directory)
    monkeypatch.undo()

    trained = run(assembly(diary), directory, resume=True)

    assert trained.ended == "it is enough"
    assert "step 3" not in diary.heard
    assert diary.heard.count("ended 2: it is enough") == 1
    assert ends(directory.folder) == ["it is enough"]


@pytest.mark.parametrize(
    ("asks", "presses"),
    [
        ("step_started", "step_started"),
        ("step_started", "step_finished"),
        ("step_finished", "step_finished"),
        ("step_finished", "validated"),
        ("validated", "validated"),
        ("checkpoint_saved", "checkpoint_saved"),
        ("checkpoint_saved", "training_ended"),
    ],
)
def test_a_request_survives_an_interruption(directory, asks, presses):
    def assembly(*observers):
        training = Training(batch_size=4, checkpoint_every=2)
        validation = Validation(every=2, images=4)
        asking = Asking(asks, 2)
        return make(asking, *observers, training=training, validation=validation)

    whole = run(assembly(Diary()))
    with pytest.raises(KeyboardInterrupt):
        run(assembly(Pressing(presses, 2)), directory)
    diary = Diary()

    trained = run(assembly(diary), directory, resume=True)

    assert trained.ended == "it is enough"
    assert "step 3" not in diary.heard
    assert ends(directory.folder) == ["it is enough"]
    assert ("ended 2: it is enough" in diary.heard) == (presses != "training_ended")
    assert same_weights(trained, whole) or asks == "checkpoint_saved"


def test_early_stopping_survives_an_interruption(directory):
    validation = Validation(every=1, stop_on="told", patience=1)

    def assembly(*observers):
        metrics = [Told(0.5, 0.4, 0.9, 0.9)]
        return make(*observers, validation=validation, metrics=metrics)

    with pytest.raises(KeyboardInterrupt):
        run(assembly(Pressing("validated", 2)), directory)
    diary = Diary()

    trained = run(assembly(diary), directory, resume=True)

    assert trained.ended.startswith("told has not improved")
    assert diary.heard[-2:] == ["evaluated 2", "finished"]


def test_after_the_last_step_there_is_nothing_to_end(directory):
    diary = Diary()

    trained = run(make(diary, Enough(after=6)), directory)

    assert trained.ended == ""
    assert diary.heard[-3:] == ["step 6", "evaluated 6", "finished"]
    assert ends(directory.folder) == []


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_rates_may_be_numbers_of_numpy(kind):
    diary = Diary()
    halve = Rates(lambda step, rates: {"heads": kind(rates["heads"])})

    run(make(diary, halve, stages=[Stage(steps=2)]))

    assert len(halve.seen) == 2
    assert [used["heads"] for used in diary.rates] == [float(kind(0.02))] * 2
    assert all(type(used["heads"]) is float for used in diary.rates)


def test_evaluations_without_the_score_do_not_shift_the_best_step(directory):
    def assembly(*scores):
        validation = Validation(every=1, stop_on="told", patience=2)
        return make(validation=validation, metrics=[Told(*scores)])

    with pytest.raises(RunFailedError, match="told has no score"):
        run(assembly("no number"), directory)

    trained = run(assembly(0.3, 0.9, 0.2, 0.1, 0.1), directory, resume=True)

    assert trained.ended.endswith("its best is 0.9 after step 3")


def test_a_score_that_is_no_number_is_null_in_the_log(directory):
    metrics = [Told(*[float("nan")] * 3)]

    run(make(validation=Validation(every=2, images=4), metrics=metrics), directory)

    text = (directory.folder / "log.jsonl").read_text()
    assert "NaN" not in text
    logged = [line["validation"] for line in log(directory.folder) if "validation" in line]
    assert logged == [{"told": None}] * 2


def test_a_metric_that_fails_is_told_once_during_training(caplog):
    run(make(validation=Validation(every=1, images=4), metrics=[Told(*["no number"] * 6)]))

    told = [text for text in caplog.messages if text.startswith("metric told has no score")]
    assert len(told) == 2  # also after the final evaluation, whose scores lack it


def test_other_ranks_do_not_tell_which_metrics_fail(caplog, monkeypatch):
    monkeypatch.setattr(ProcessGroup, "is_main", False)

    run(make(validation=Validation(every=1, images=4), metrics=[Told(*["no number"] * 6)]))

    assert not any("has no score" in text for text in caplog.messages)

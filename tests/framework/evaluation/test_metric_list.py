from pathlib import Path

import numpy as np
import pytest
import torch

from celstack.cli.output import printed_warnings
from celstack.evaluation.metric_list import MetricList, as_number, warn_of_failures
from celstack.evaluation.score_metadata import image_scores
from celstack.interfaces.dataset import Batch
from celstack.interfaces.metric import Metric
from celstack.scene import Rendering, Scene


class Constant(Metric):
    """Returns what it is told to; raises where it is told to."""

    def __init__(self, value=0.5, scores=None, fails="", name="constant"):
        self.value, self.scores, self.fails, self.name = value, scores, fails, name

    def _call(self, method):
        if self.fails == method:
            raise ValueError("no\nway")

    def reset(self):
        self._call("reset")

    def update(self, scene, rendering, batch):
        self._call("update")

    def compute(self):
        self._call("compute")
        return self.value


SCENE = Scene(
    sprite=torch.zeros(2, 1, dtype=torch.int64),
    sprite_params=torch.zeros(2, 1, 0),
    layer_params=torch.zeros(2, 1, 0),
    occlusion=torch.zeros(2, 1, 1),
)
IMAGES = torch.zeros(2, 1, 1, 1)
RENDERING = Rendering(IMAGES, torch.zeros(2, 1, 2, 1, 1), IMAGES, torch.zeros(2, 1, 1, 1))


def evaluate(*metrics):
    """Evaluate two batches of two images."""
    listed = MetricList(metrics)
    for _ in range(2):
        listed.update(SCENE, RENDERING, Batch(IMAGES))
    return listed.compute(), listed.failures


@pytest.mark.parametrize("method", ["reset", "update", "compute"])
def test_one_that_raises_costs_only_itself(method):
    first, broken, last = (Constant(name=name) for name in ("first", "broken", "last"))
    broken.fails = method

    scores, failures = evaluate(first, broken, last)

    assert scores == {"first": 0.5, "last": 0.5}
    assert failures == {"broken": f"it failed in {method}: ValueError: no way"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None"),
        ("0.5", "'0.5'"),
        (torch.zeros(2), "tensor([0., 0.])"),
        (1j, "1j"),
        ({}, "{}"),
    ],
)
def test_one_that_returns_no_number_costs_only_itself(value, told):
    scores, failures = evaluate(Constant(value), Constant(name="other"))

    assert scores == {"other": 0.5}
    assert failures == {"constant": f"it failed in compute: {told} is not a number"}


@pytest.mark.parametrize("value", [torch.tensor(3.0), torch.tensor([3]), np.float32(3), 3])
def test_a_number_may_be_of_any_type(value):
    scores, failures = evaluate(Constant(value))

    assert (scores, failures) == ({"constant": 3.0}, {})
    assert isinstance(scores["constant"], float)


def test_a_score_that_is_not_defined_is_no_failure():
    scores, failures = evaluate(Constant(float("nan")))

    assert list(scores) == ["constant"]
    assert failures == {}


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([0.5] * 3, "scores has 3 numbers for 4 images"),
        ([0.5, 0.5, 0.5, None], "None is not a number"),
        (7, "TypeError: 'int' object is not iterable"),
    ],
)
def test_one_with_strange_scores_of_images_costs_only_itself(scores, reason):
    found, failures = evaluate(Constant(scores=scores))

    assert found == {}
    assert failures == {"constant": f"it failed in compute: {reason}"}


def test_scores_of_images_are_stored_as_plain_numbers():
    metric = Constant(scores=torch.tensor([0.5, 0.25, 1.0, 0.0]))
    scores, _ = evaluate(metric)

    assert image_scores([metric], scores) == {"constant": [0.5, 0.25, 1.0, 0.0]}


def test_one_without_its_ground_truth_is_left_out_and_no_failure():
    needy = Constant()
    needy.needs = ("label",)

    assert evaluate(needy) == ({}, {})


def test_one_that_needs_what_no_batch_has_costs_only_itself():
    needy = Constant()
    needy.needs = ("weather",)

    scores, failures = evaluate(needy, Constant(name="other"))

    assert scores == {"other": 0.5}
    assert "no attribute 'weather'" in failures["constant"]


def test_an_interruption_is_not_swallowed():
    class Interrupting(Constant):
        def compute(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(Interrupting())


def test_numbers_are_finite_or_not():
    assert as_number(float("inf")) == float("inf")


def test_the_warning_says_which_and_how_to_evaluate_again(capsys):
    with printed_warnings():
        warn_of_failures({"mine": "it failed"}, Path("my runs/one"))
        warn_of_failures({"mine": "it failed"})

    assert capsys.readouterr().err.splitlines() == [
        "celstack: warning: metric mine has no score: it failed; when it is mended, evaluate "
        "again with: celstack evaluate 'my runs/one'",
        "celstack: warning: metric mine has no score: it failed",
    ]

import pytest
import torch

from celstack.data.loader import to_device
from celstack.interfaces.dataset import Batch
from celstack.interfaces.metric import Metric
from celstack.recipe.assembly import Evaluation
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack.testing.parts import PlainDataset, PlainMetric
from celstack.training.evaluate import merge_views, score


class Count(Metric):
    """Counts images, and remembers how it was asked."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sizes, self.modes = [], []

    def update(self, scene, rendering, batch):
        assert len(scene) == len(rendering.image) == len(batch)
        self.sizes.append(len(batch))
        self.modes.append(rendering.image.requires_grad)

    def compute(self):
        return float(sum(self.sizes))


class Labelled(Count):
    """Needs what the plain dataset has not got."""

    needs = ("instances", "label")


class Broken(Count):
    """Fails."""

    def update(self, scene, rendering, batch):
        raise ZeroDivisionError


@pytest.fixture
def decomposer():
    """A model of plain parts."""
    decomposer = plain_decomposer(PlainSelector())
    decomposer.prepare(PlainDataset().read("train", range(4)).images)
    return decomposer


def test_every_metric_is_told_by_its_name(decomposer):
    scores = score(decomposer, PlainDataset(), [Count(), PlainMetric()], Evaluation(images=6))

    assert list(scores) == ["count", "plain_metric"]
    assert scores["count"] == 6.0


def test_images_come_in_batches_of_the_split(decomposer):
    count = Count()

    score(decomposer, PlainDataset(), [count], Evaluation(images=100, batch_size=3))

    assert count.sizes == [3, 3, 2]  # the test split has 8, the other 16


def test_whoever_watches_is_told_of_every_batch(decomposer):
    sizes = []
    evaluation = Evaluation(images=100, batch_size=3)

    score(decomposer, PlainDataset(), [], evaluation, sizes.append)

    assert sizes == [3, 3, 2]


def test_another_split_may_be_asked_for(decomposer):
    evaluation = Evaluation(images=100, split="train")

    assert score(decomposer, PlainDataset(), [Count()], evaluation) == {"count": 16.0}


def test_a_metric_without_its_ground_truth_is_left_out(decomposer):
    scores = score(decomposer, PlainDataset(), [Labelled(), Count()], Evaluation(images=2))

    assert scores == {"count": 2.0}


def test_what_a_metric_saw_before_does_not_count(decomposer):
    count = Count()
    score(decomposer, PlainDataset(), [count], Evaluation(images=2))

    assert score(decomposer, PlainDataset(), [count], Evaluation(images=3)) == {"count": 3.0}


def test_no_gradients_are_kept(decomposer):
    count = Count()

    score(decomposer, PlainDataset(), [count], Evaluation(images=2))

    assert count.modes == [False]


def test_the_model_is_scored_in_eval_mode(decomposer):
    modes = []
    decomposer.predictor.register_forward_pre_hook(lambda part, _: modes.append(part.training))
    decomposer.train()

    score(decomposer, PlainDataset(), [Count()], Evaluation(images=2))

    assert modes == [False]


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_its_mode(decomposer, training):
    decomposer.train(training)

    score(decomposer, PlainDataset(), [], Evaluation(images=2))

    assert decomposer.training is training


def test_the_model_is_left_in_its_mode_even_by_a_metric_that_fails(decomposer):
    decomposer.train()

    assert score(decomposer, PlainDataset(), [Broken()], Evaluation(images=2)) == {}

    assert decomposer.training


def test_the_model_is_left_in_its_mode_even_by_a_metric_that_cannot_be_reset(decomposer):
    class Stuck(Count):
        def __init__(self):
            pass

        def reset(self):
            raise ZeroDivisionError

    decomposer.train()

    assert score(decomposer, PlainDataset(), [Stuck()], Evaluation(images=2)) == {}

    assert decomposer.training


def test_a_metric_that_fails_costs_only_itself(decomposer, caplog):
    scores = score(decomposer, PlainDataset(), [Broken(), Count()], Evaluation(images=2))

    assert scores == {"count": 2.0}
    assert caplog.messages == [
        "metric broken has no score: it failed in update: ZeroDivisionError"
    ]


def test_whoever_asks_is_told_why_metrics_failed_instead(decomposer, caplog):
    failures = {}

    score(decomposer, PlainDataset(), [Broken()], Evaluation(images=2), failures=failures)

    assert failures == {"broken": "it failed in update: ZeroDivisionError"}
    assert caplog.messages == []


def test_the_random_state_is_left_alone(decomposer):
    before = torch.get_rng_state()

    score(decomposer, PlainDataset(), [Count()], Evaluation(images=2))

    assert torch.equal(torch.get_rng_state(), before)


def test_all_that_a_batch_has_goes_to_the_device_and_nothing_is_made_up():
    batch = Batch(torch.zeros(1, 3, 2, 2), instances=torch.zeros(1, 2, 2, dtype=torch.int64))

    moved = to_device(batch, torch.device("meta"))

    assert (moved.images.device.type, moved.instances.device.type) == ("meta", "meta")
    assert (moved.classes, moved.label) == (None, None)


class Sprites(Count):
    """Remembers which sprites it was shown."""

    def update(self, scene, rendering, batch):
        super().update(scene, rendering, batch)
        self.seen = {*scene.sprite.flatten().tolist()}


def test_views_of_a_sprite_are_one_sprite_in_scores(decomposer):
    class Alternating(PlainSelector):
        def explain(self, images, decomposer, noise, allow_empty):
            scene = super().explain(images, decomposer, noise, allow_empty)
            return scene.evolve(
                sprite=torch.full_like(scene.sprite, decomposer.sprites.count - 1)
            )

    metric = Sprites()
    decomposer.selector = Alternating()
    for views, seen in (
        (1, decomposer.sprites.count - 1),
        (2, (decomposer.sprites.count - 1) // 2),
    ):
        decomposer.sprites.views = views
        score(decomposer, PlainDataset(), [metric], Evaluation(images=4))
        assert metric.seen == {seen}


def test_an_empty_layer_stays_empty_when_views_are_merged(decomposer):
    scene = decomposer.explain(PlainDataset().read("test", range(2)).images)
    empty = scene.evolve(sprite=torch.full_like(scene.sprite, -1))

    assert not merge_views(empty, 2).filled.any()

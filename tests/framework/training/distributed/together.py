"""Run something small in one process or several, and leave what it learned in a file.

    python together.py SCENARIO FILE RANK

All that is computed is computed in doubles: rounding then is so small that, after hundreds of
steps in which every choice depends on all choices before it, the same run is still the same.
"""

import sys

import attrs
import torch

import celstack
from celstack import (
    Assembly,
    Batch,
    Dataset,
    Evaluation,
    Observer,
    Stage,
    Training,
    Transforms,
    Validation,
)
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.encoders.resnet32 import Resnet32
from celstack_kit.encoders.strided import Strided
from celstack_kit.metrics.ari import Ari
from celstack_kit.metrics.mse import Mse
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


class Doubles(Dataset):
    """Images of another dataset, in doubles."""

    splits = ("train", "test")

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    @property
    def image_shape(self):
        return self.dataset.image_shape

    def count(self, split):
        return self.dataset.count(split)

    def read(self, split, indices):
        batch = self.dataset.read(split, indices)
        return Batch(batch.images.double(), batch.instances, batch.classes)


class Diary(Observer):
    """Writes down losses, sizes of batches, the sprites in use, and who started again."""

    def __init__(self):
        self.losses, self.images, self.usage, self.again = [], [], [], []

    @celstack.hookimpl
    def celstack_step_finished(self, loss, images, scene):
        self.losses.append(float(loss.total))
        self.images.append(images)
        self.usage.append(scene.sprite.clone())

    @celstack.hookimpl
    def celstack_sprites_reassigned(self, step, sprites):
        self.again.append((step, sprites))


def pieces(count: int, per_image: int) -> Dataset:
    return Doubles(Tetrominoes(count=count, test_count=21, pieces="IOT", per_image=per_image))


def predicted() -> Assembly:
    """A network, sprites that are frozen at first, reassignment; the last batch is tiny."""
    return Assembly(
        dataset=pieces(243, 1),
        sprites=Pixels(count=3, size=(20, 20), jitter=0.02),
        transforms=Transforms(layer=[Color(), Position()]),
        compositor=Ordered(layers=1),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=8, features=16), hidden=16),
        training=Training(
            batch_size=15,
            reassign_every=40,
            reassign_below=0.9,
            prototype_rate=1e-2,
            head_rate=3e-4,
        ),
        stages=[Stage(steps=60, freeze_sprites=True), Stage(steps=240)],
        metrics=[Mse(), Ari()],
        evaluation=Evaluation(images=21, batch_size=8),
    )


def taught() -> Assembly:
    """Sprites found by matching, then a network that is taught what matching finds."""
    return Assembly(
        dataset=pieces(47, 2),
        sprites=Pixels(count=4, size=(20, 20), jitter=0.05, mask_sigma=4.0),
        transforms=Transforms(layer=[Color(), Position()]),
        compositor=Occlusion(layers=2),
        selector=Greedy(empty_cost=1e-4),
        predictor=Network(encoder=Resnet32(), hidden=8),
        training=Training(
            batch_size=9,
            reassign_every=10,
            reassign_below=0.9,
            prototype_rate=2e-2,
            area_cost=2e-3,
        ),
        stages=[
            Stage(steps=25, selector=Matching()),
            Stage(steps=8, teacher=Matching()),
            Stage(steps=4),
        ],
        metrics=[Mse(), Ari()],
        evaluation=Evaluation(images=21, batch_size=8),
    )


class Steersman(Observer):
    """Changes rates, which depend on scores, and ends training; rank 0 alone hears of it."""

    @celstack.hookimpl
    def celstack_step_started(self, step, rates, validations):
        return {"prototypes": rates["prototypes"] / (step + len(validations))}

    @celstack.hookimpl
    def celstack_step_finished(self, step):
        if step == 8:
            raise celstack.StopTraining("enough")


def steered() -> Assembly:
    """A network whose rates change, and whose training ends early."""
    return attrs.evolve(
        predicted(),
        stages=[Stage(steps=20)],
        validation=Validation(every=3, images=9, stop_on="mse", patience=5),
        observers=[Steersman()],
    )


def main(scenario: str, path: str, rank: str) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    diary = Diary()
    assembly = {"predicted": predicted, "taught": taught, "steered": steered}[scenario]()
    assembly.observers.append(diary)
    trained = celstack.run(assembly)
    left = {
        "model": trained.decomposer.state_dict(),
        "scores": trained.scores,
        "ended": trained.ended,
        **{name: getattr(diary, name) for name in ("losses", "images", "usage", "again")},
    }
    torch.save(left, path + rank)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How much a training step with matching costs, compared with an encoder alone.

    python tests/benchmarks/matching.py [rounds] [sweeps ...]

Prints, for 32 tetromino images and 19 sprites, the time of a whole training step divided by
that of one forward and backward pass of the resnet32 encoder on the same images, measured
alternately. Before anything is learned, sprites overlap most and a step costs most.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Training
from celstack.training.optimizer import build_optimizer
from celstack.training.step import take_step
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.encoders.resnet32 import Resnet32
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def ratio(sweeps: int, rounds: int) -> None:
    torch.manual_seed(0)
    images = Tetrominoes(count=32).read("train", range(32)).images
    model = Decomposer(
        sprites=Pixels(count=19, size=(24, 24), jitter=0.05),
        layer_transforms=[Color(), Position()],
        compositor=Ordered(layers=3),
        selector=Matching(sweeps=sweeps),
    )
    model.prepare(images)
    model.train()
    optimizer = build_optimizer(model, Training(prototype_rate=1e-9))
    encoder = Resnet32()
    encoder.prepare((3, 35, 35))

    def encode() -> None:
        encoder.zero_grad()
        encoder(images).sum().backward()

    steps, alone = [], []
    for _ in range(rounds):
        alone.append(seconds(encode))
        steps.append(seconds(lambda: take_step(model, optimizer, images, mask_noise=0.4)))
    # Neighbours in time share what else the machine does: compare them pair by pair.
    ratios = [step / encoded for step, encoded in zip(steps, alone, strict=True)]
    print(f"{sweeps:6d} {median(alone):10.3f} {median(steps):10.3f} {median(ratios):10.2f}")


def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]] or [15]
    print(f"{'sweeps':>6} {'encoder, s':>10} {'step, s':>10} {'ratio':>10}")
    for sweeps in numbers[1:] or (1, 2):
        ratio(sweeps, numbers[0])


if __name__ == "__main__":
    main()

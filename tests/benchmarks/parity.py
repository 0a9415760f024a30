"""How well the paper's method learns here, beside the authors' published implementation.

    python tests/benchmarks/parity.py [WORLD ...] [--seeds N]

Trains in the small worlds of ``tests/parity/worlds.py`` and prints, times 1000, the training
loss along the way and that of evaluation in the end, and the accuracy where there are classes;
with the authors' figures and those of Celstack 0.1.0, quoted.
"""

import argparse
import sys
from pathlib import Path
from statistics import mean

import torch

import celstack
from celstack import Observer, hookimpl

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))
from worlds import SEEDS, WORLDS, World

WINDOW = 50
"""Losses are means of so many steps."""


class Losses(Observer):
    def __init__(self):
        self.losses = []

    @hookimpl
    def celstack_step_finished(self, loss):
        self.losses.append(float(loss.total))


def learn(world: World, seed: int) -> tuple[list[float], dict[str, float]]:
    """Return the losses along the way and the scores in the end, times 1000 and 100."""
    assembly = world.make(seed)
    assembly.observers.append(heard := Losses())
    scores = celstack.run(assembly).scores
    along = [1000 * mean(heard.losses[max(0, s - WINDOW) : s]) for s in world.steps]
    return along, {"end": 1000 * scores["mse"], "accuracy": 100 * scores.get("accuracy", 0.0)}


def row(title: str, along: list[float], end: float, accuracy: float | None) -> None:
    numbers = [*(f"{loss:7.1f}" for loss in along), f"{end:9.2f}"]
    numbers += [f"{accuracy:10.1f}"] if accuracy is not None else []
    print(f"  {title:<16}", *numbers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("worlds", nargs="*", choices=[*WORLDS, []], default=[*WORLDS])
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    asked = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; loss x 1000")
    for name in asked.worlds:
        world = WORLDS[name]
        print(f"{name}: {world.title}; after {world.steps} steps, in the end, accuracy")
        theirs, before = world.accuracy or (None, None)
        row("authors", list(world.authors), world.authors_end, theirs)
        row("Celstack 0.1.0", list(world.before), world.before_end, before)
        runs = []
        for seed in range(asked.seeds):
            along, scores = learn(world, seed)
            accuracy = scores["accuracy"] if world.accuracy else None
            runs.append((along, scores["end"], accuracy))
            row(f"seed {seed}", *runs[-1])
        along = [mean(each) for each in zip(*(run[0] for run in runs), strict=True)]
        accuracy = mean(run[2] for run in runs) if world.accuracy else None
        row("mean", along, mean(run[1] for run in runs), accuracy)


if __name__ == "__main__":
    main()

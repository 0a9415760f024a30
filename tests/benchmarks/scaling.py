"""What a second process gives, beside what a second thread does.

    python tests/benchmarks/scaling.py [rounds] [MODEL ...]

Prints, for the paper's models at the paper's batch sizes, how many images a second are learned
from by one process on one thread, by one on two threads, and by two on one thread each, which
share every batch; and both of the latter as ratios to the first. The three take turns, so that
whatever else the machine does happens to all of them. It needs two cores.
"""

import os
import subprocess
import sys
import time
from statistics import median

import torch
from step import MODELS, STILL, ready

from celstack.system import tune_allocator
from celstack.training.distributed.engine import Engine
from celstack.training.distributed.launcher import child_environment
from celstack.training.distributed.setup import init_process_group
from celstack.training.optimizer import build_optimizer
from celstack.training.step import take_step

STEPS = 8
WAYS = {"1 x 1": (1, 1), "1 x 2": (1, 2), "2 x 1": (2, 1)}
"""Processes and threads of each."""


def work(name: str) -> None:
    """Print the seconds of some steps of a model, as one of the processes there are."""
    tune_allocator()
    make, shape = MODELS[name]
    model = make()
    images = ready(model, shape)
    engine = Engine(init_process_group("cpu"))
    engine.place_model(model).train()
    optimizer = build_optimizer(model, STILL)
    engine.group.begin_batch(len(images))
    own = images[engine.group.local_slice(len(images))]
    for step in range(STEPS + 2):
        if step == 2:
            start = time.perf_counter()
        take_step(model, optimizer, own, mask_noise=0.4, engine=engine)
    if engine.group.is_main:
        print(time.perf_counter() - start)


def images_a_second(name: str, processes: int, threads: int) -> float:
    environment = {**child_environment(processes), "OMP_NUM_THREADS": str(threads)}
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", name],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [child.communicate()[0] for child in children]
    assert not any(child.returncode for child in children)
    return STEPS * MODELS[name][1][0] / float(said[0])


def main(rounds: int, names: list[str]) -> None:
    print(f"{os.cpu_count()} cores, torch {torch.__version__}; medians of {rounds} rounds")
    print(f"{'images/s':<16}" + "".join(f"{way:>9}" for way in WAYS) + "  ratios to 1 x 1")
    for name in names:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, (processes, threads) in WAYS.items():
                found[way].append(images_a_second(name, processes, threads))
        one = found.pop("1 x 1")
        ratios = {
            way: median(other / first for other, first in zip(speeds, one, strict=True))
            for way, speeds in found.items()
        }
        speeds = "".join(f"{median(these):9.1f}" for these in [one, *found.values()])
        said = ", ".join(f"{way}: {ratio:.2f}" for way, ratio in ratios.items())
        print(f"{name:<16}{speeds}  {said}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main(int((sys.argv[1:] or ["5"])[0]), sys.argv[2:] or list(MODELS))

"""How much a training step with fitting costs, and where the time goes.

    python tests/benchmarks/fitting.py [rounds] [recipe ...]

Prints, for each recipe, the time of a whole training step divided by that of one forward and
backward pass of the resnet32 encoder on the same images, measured alternately; images a
second; and the shares of a step that finding scenes, rendering them and learning take. Then
the operations that take longest. Needs the recipes' data.
"""

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.system import tune_allocator
from celstack.training.initialize import init_model
from celstack.training.optimizer import build_optimizer
from celstack_kit.encoders.resnet32 import Resnet32

RECIPES = ("gtsrb8.toml", "weizmann_horse.toml", "svhn.toml")
OPERATIONS = 6


def seconds(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def measure(recipe: str, rounds: int) -> None:
    catalog = Catalog()
    assembly = assemble(resolve(read_recipe(recipe), catalog), catalog)
    began = time.perf_counter()
    model = init_model(assembly).train()
    prepared = time.perf_counter() - began
    optimizer = build_optimizer(model, assembly.training)
    images = assembly.dataset.read("train", range(assembly.training.batch_size)).images
    encoder = Resnet32()
    encoder.prepare(model.outline().image_shape)

    def encode() -> None:
        encoder.zero_grad()
        encoder(images).sum().backward()

    def step() -> tuple[float, float, float]:
        noise = model.draw_noise(assembly.training.mask_noise)
        times = [time.perf_counter()]
        scene = model.explain(images, noise)
        times.append(time.perf_counter())
        again, _ = model.reconstruct(scene, noise)
        times.append(time.perf_counter())
        optimizer.zero_grad()
        (images - again).square().mean().backward()
        optimizer.step()
        times.append(time.perf_counter())
        explained, rendered, learned = (b - a for a, b in pairwise(times))
        return explained, rendered, learned

    step()  # compiles what is compiled when it is first needed
    alone, parts = [], []
    for _ in range(rounds):
        alone.append(seconds(encode))
        parts.append(step())
    whole = [sum(part) for part in parts]
    # Neighbours in time share what else the machine does: compare them pair by pair.
    ratio = median(one / other for one, other in zip(whole, alone, strict=True))
    shares = [sum(part[n] for part in parts) / sum(whole) for n in range(3)]
    print(
        f"{recipe}: step {median(whole):.3f} s, encoder {median(alone):.3f} s, "
        f"ratio {ratio:.2f}, {len(images) / median(whole):.0f} images/s, "
        f"start {prepared:.1f} s; "
        f"finding {shares[0]:.0%}, rendering {shares[1]:.0%}, learning {shares[2]:.0%}",
        flush=True,
    )
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        step()
    events = sorted(watched.key_averages(), key=lambda one: -one.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    top = [f"{e.key} {e.self_cpu_time_total / total:.0%}" for e in events[:OPERATIONS]]
    print(f"    {', '.join(top)}", flush=True)


def main() -> None:
    tune_allocator()
    torch.manual_seed(0)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    for recipe in sys.argv[2:] or RECIPES:
        measure(recipe, rounds)


if __name__ == "__main__":
    main()

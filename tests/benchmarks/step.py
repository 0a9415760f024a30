"""How much a training step costs beyond its encoder.

    [OMP_NUM_THREADS=1] python tests/benchmarks/step.py [rounds] [MODEL ...]

Prints, for the paper's models at the paper's batch sizes, the time of a whole training step
divided by that of the encoder's own forward and backward pass, measured alternately; how the
choice of sprites grows with sprites and layers; and the peak memory of a step with few and
many sprites (Linux only). Layers are spread over the canvas, and images are what the model
itself makes of random sprites there: no layer stays empty, and greedy selection needs a second
sweep, as it does in the middle of a training run. On one thread the time is that of the
processor, which other programs hardly disturb.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from celstack.model.candidates import render_candidates
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Training
from celstack.system import tune_allocator
from celstack.training.optimizer import build_optimizer
from celstack.training.step import take_step
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.resnet18 import Resnet18
from celstack_kit.encoders.resnet32 import Resnet32
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.exhaustive import Exhaustive
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

# Rates so small that the model stays what it is while it is measured.
STILL = Training(prototype_rate=1e-9, encoder_rate=1e-9, head_rate=1e-9)


def tetrominoes(
    sprites: int = 19, layers: int = 3, encoder: object = None, compositor: type = Ordered
) -> Decomposer:
    return Decomposer(
        sprites=Pixels(count=sprites, size=(24, 24)),
        layer_transforms=[Color(), Position()],
        compositor=compositor(layers=layers),
        selector=Greedy(),
        predictor=Network(encoder=encoder or Resnet32()),
    )


def multi_dsprites() -> Decomposer:
    return Decomposer(
        sprites=Pixels(count=3, size=(28, 28), mask_sigma=7.0),
        backgrounds=Pixels(count=1, appearance=0.5),
        sprite_transforms=[Similarity()],
        layer_transforms=[Color(), Position()],
        background_transforms=[Color()],
        compositor=Occlusion(layers=5),
        selector=Greedy(sweeps=3, empty_cost=1e-4),
        predictor=Network(encoder=Resnet32(pool=4)),
    )


def clevr6() -> Decomposer:
    return Decomposer(
        sprites=Pixels(count=6, size=(40, 40), mask_sigma=10.0),
        backgrounds=Pixels(count=1, start="mean"),
        sprite_transforms=[Projective()],
        layer_transforms=[Color(), Position()],
        background_transforms=[Color()],
        compositor=Occlusion(layers=6),
        selector=Greedy(sweeps=3, empty_cost=1e-4),
        predictor=Network(encoder=Resnet18(pool=2)),
    )


def gtsrb8() -> Decomposer:
    return Decomposer(
        sprites=Pixels(count=8),
        backgrounds=Pixels(count=1, start="mean"),
        sprite_transforms=[Color(), Projective(), Tps()],
        background_transforms=[Color(), Projective(), Tps()],
        compositor=Ordered(layers=1),
        selector=Exhaustive(),
        predictor=Network(encoder=Resnet32()),
    )


MODELS: dict[str, tuple[Callable[[], Decomposer], tuple[int, ...]]] = {
    "tetrominoes": (tetrominoes, (32, 3, 35, 35)),
    "multi_dsprites": (multi_dsprites, (32, 3, 64, 64)),
    "clevr6": (clevr6, (32, 3, 128, 128)),
    "gtsrb8": (gtsrb8, (128, 3, 28, 28)),
}


@torch.no_grad()
def ready(model: Decomposer, shape: tuple[int, ...]) -> torch.Tensor:
    torch.manual_seed(0)
    model.prepare(torch.rand(shape))
    model.train()
    for sprites in model.sprites.parameters():
        sprites.copy_(torch.rand_like(sprites))
    layer_heads = model.predictor.layer_heads.heads
    for heads in (*layer_heads, *model.predictor.sprite_heads.heads):
        if heads.biases:
            heads.biases[-1].normal_(std=0.03)
    if model.layer_chain.has_warp():
        layer_heads[-1].biases[-1][..., -2:].uniform_(-1, 1)
    scene = model.explain(torch.rand(shape))
    sprite = torch.randint(model.sprites.count, scene.sprite.shape)
    index = sprite[:, :, None, None].expand(-1, -1, 1, scene.sprite_params.shape[-1])
    every = model.predict(torch.rand(shape)).sprite_params
    params = every.gather(2, index).squeeze(2)
    return model.render(scene.evolve(sprite=sprite, sprite_params=params)).image


def seconds(function: Callable[[], object]) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    function()
    return clock() - start


def ratio(name: str, rounds: int) -> None:
    make, shape = MODELS[name]
    model = make()
    images = ready(model, shape)
    optimizer = build_optimizer(model, STILL)
    encoder = model.predictor.encoder

    def encode() -> None:
        encoder.zero_grad()
        encoder(images).sum().backward()

    steps, alone = [], []
    for _ in range(rounds):
        alone.append(seconds(encode))
        steps.append(seconds(lambda: take_step(model, optimizer, images, mask_noise=0.4)))
    # Neighbours in time share what else the machine does: compare them pair by pair.
    ratios = [step / encoded for step, encoded in zip(steps, alone, strict=True)]
    print(
        f"{name:<16} {median(alone):8.3f} s {median(steps):8.3f} s {median(ratios):8.2f}",
        flush=True,
    )


def choosing(sprites: int, layers: int, compositor: type, rounds: int) -> tuple[float, float]:
    """Return the seconds to render all candidates, and those to choose among them."""
    model = tetrominoes(sprites, layers, Strided(), compositor)
    images = ready(model, (32, 3, 35, 35))
    with torch.no_grad():
        prediction = model.predict(images)
        occlusion = model.compositor.occlusion(prediction.occlusion_logits, True)
        backdrops = model.render_backgrounds(prediction.background_params)
        candidates = render_candidates(model, prediction, None)

        def choose() -> None:
            model.selector.choose(images, candidates, backdrops, occlusion, None)

        rendering = min(
            seconds(lambda: render_candidates(model, prediction, None)) for _ in range(rounds)
        )
        return rendering, min(seconds(choose) for _ in range(rounds))


def growth(rounds: int) -> None:
    print("\ncandidates of 32 images of 35 x 35: milliseconds for all layers, and for one")
    print(f"{'':<22} {'render':>8} {'choose':>8} {'render/L':>9} {'choose/L':>9}")
    sizes = [(10, 3), (20, 3), (40, 3), (10, 6), (10, 12), (10, 24)]
    for compositor in (Ordered, Occlusion):
        for sprites, layers in sizes:
            rendering, choice = choosing(sprites, layers, compositor, rounds)
            title = f"{compositor.__name__:<9} K = {sprites:2d} L = {layers:2d}"
            numbers = (rendering, choice, rendering / layers, choice / layers)
            print(title, *(f"{1e3 * number:8.1f}" for number in numbers), flush=True)


def memory() -> None:
    print("\npeak memory of a step of the tetrominoes model, beyond what is there before")
    for sprites in (10, 40):
        command = [sys.executable, __file__, "--memory", str(sprites)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(f"K = {sprites}: {output.strip()} MiB", flush=True)


def measure_memory(sprites: int) -> None:
    model = tetrominoes(sprites)
    images = ready(model, MODELS["tetrominoes"][1])
    optimizer = build_optimizer(model, STILL)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest memory so far
    for _ in range(2):
        take_step(model, optimizer, images, mask_noise=0.4)
    print(f"{(status('VmHWM') - before) / 1024:.0f}")


def status(field: str) -> int:
    """Read a number of KiB that Linux keeps about this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--memory"]:
        measure_memory(int(arguments[1]))
        return
    tune_allocator()  # as a run does
    rounds = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 15
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"medians of {rounds} rounds"
    )
    print(f"{'model':<16} {'encoder':>10} {'step':>10} {'ratio':>8}")
    for name in arguments or MODELS:
        ratio(name, rounds)
    if not arguments:
        growth(rounds)
        memory()


if __name__ == "__main__":
    main()

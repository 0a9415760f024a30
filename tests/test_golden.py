"""A golden run: a refactor must show the identical loss under a fixed seed."""

import json
from pathlib import Path

import llvmlite.binding
import numba
import pytest
import torch

import celstack
from celstack import Assembly, Evaluation, Stage, Training, Transforms
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.encoders.resnet32 import Resnet32
from celstack_kit.metrics.mse import Mse
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.fitting import Fitting
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity

GOLDEN = Path(__file__).parent / "golden.json"


def machine() -> str:
    """Name what decides the last bits: another processor or torch may round otherwise.

    So may a processor of another model with the same instructions: libraries choose other
    ways for it, and loops are compiled for it alone.
    """
    version, cpu = torch.__version__.split("+")[0], torch.backends.cpu.get_cpu_capability()
    model = llvmlite.binding.get_host_cpu_name()
    return f"torch {version} numba {numba.__version__} {cpu} {model}"


def network() -> Assembly:
    """Put nearly everything that the paper's method has into one model."""
    return Assembly(
        dataset=Tetrominoes(count=64, test_count=8, ground=0.3),
        sprites=Pixels(count=4, size=(12, 12), jitter=0.05),
        backgrounds=Pixels(count=2, start="sample"),
        transforms=Transforms(
            sprite=[Similarity()], layer=[Color(), Position()], background=[Color()]
        ),
        compositor=Occlusion(layers=3),
        selector=Greedy(sweeps=2, empty_cost=1e-4),
        predictor=Network(encoder=Resnet32(pool=2), hidden=16),
        training=Training(batch_size=8, reassign_every=5),
        stages=[
            Stage(steps=3, freeze_sprites=True, transforms=["color", "position"]),
            Stage(steps=9),
            Stage(steps=2, network_factor=0.1),
        ],
        metrics=[Mse()],
        evaluation=Evaluation(images=8),
    )


def matching() -> Assembly:
    """Search for sprites that may be turned and resized.

    None are reassigned: what is drawn anew from residuals differs much where these differ in
    their last bits, so that machines could not be compared.
    """
    return Assembly(
        dataset=Tetrominoes(count=64, test_count=8, ground=0.3),
        sprites=Pixels(count=4, size=(24, 24), mask_sigma=4.0, jitter=0.05),
        backgrounds=Pixels(count=1, start="mean"),
        transforms=Transforms(
            sprite=[Similarity()], layer=[Color(), Position()], background=[Color()]
        ),
        compositor=Occlusion(layers=3),
        selector=Matching(empty_cost=1e-4, starts=2, turns=8, sizes=[0.8, 1.0], refine=2),
        training=Training(batch_size=8, prototype_rate=2e-2),
        stages=[Stage(steps=8)],
        metrics=[Mse()],
        evaluation=Evaluation(images=8),
    )


def fitting() -> Assembly:
    """Move sprites until they fit, from a start that groups images."""
    return Assembly(
        dataset=Tetrominoes(count=64, test_count=8, ground=0.3, per_image=1),
        sprites=Pixels(count=4, size=(35, 35), start="lookalikes", mask_sigma=8.0),
        backgrounds=Pixels(count=1, start="mean"),
        transforms=Transforms(sprite=[Color(), Affine()], background=[Color()]),
        compositor=Ordered(layers=1),
        selector=Fitting(steps=3),
        training=Training(batch_size=8, prototype_rate=1e-2),
        stages=[Stage(steps=8)],
        metrics=[Mse()],
        evaluation=Evaluation(images=8),
    )


ASSEMBLIES = {"network": network, "matching": matching, "fitting": fitting}


def losses(name: str) -> list[float]:
    """Run a model for a few steps, on one thread."""
    assembly = ASSEMBLIES[name]()
    assembly.observers.append(diary := Diary())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        trained = celstack.run(assembly)
    finally:
        torch.set_num_threads(threads)
    return [*diary.losses, trained.scores["mse"]]


class Diary(celstack.Observer):
    """Writes the losses down."""

    def __init__(self):
        self.losses = []

    @celstack.hookimpl
    def celstack_step_finished(self, loss):
        self.losses.append(float(loss.total))


@pytest.fixture(scope="module", params=[*ASSEMBLIES])
def run(request):
    return request.param, losses(request.param)


def test_two_runs_agree_bit_for_bit(run):
    name, first = run

    assert losses(name) == first


def test_the_losses_are_the_golden_ones(run):
    name, found = run
    golden = json.loads(GOLDEN.read_text())

    known = golden.get(machine())

    if known is not None:
        assert [loss.hex() for loss in found] == known[name]
    else:
        nearby = [float.fromhex(loss) for loss in next(iter(golden.values()))[name]]
        assert found == pytest.approx(nearby, rel=1e-2)


if __name__ == "__main__":
    # python tests/test_golden.py writes down the losses of this machine.
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    golden[machine()] = {name: [loss.hex() for loss in losses(name)] for name in ASSEMBLIES}
    GOLDEN.write_text(json.dumps(golden, indent=2) + "\n")

"""Sprites are learned by matching: from blobs to clear shapes, without a predictor."""

import celstack
from celstack import Assembly, Stage, Training, Transforms
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.metrics.ari import Ari
from celstack_kit.metrics.miou import Miou
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


def test_three_shapes_are_learned_in_a_moment():
    assembly = Assembly(
        dataset=Tetrominoes(count=1024, test_count=32, pieces="IO", per_image=2, side=30),
        sprites=Pixels(count=3, size=(22, 22), mask_sigma=4.0, jitter=0.05),
        transforms=Transforms(layer=[Color(), Position()]),
        compositor=Ordered(layers=2),
        selector=Matching(sweeps=1),
        training=Training(
            batch_size=16,
            prototype_rate=0.03,
            betas=(0.9, 0.99),
            area_cost=2e-3,
            reassign_every=20,
        ),
        stages=[Stage(steps=80), Stage(steps=40, prototype_factor=0.3, reassign=False)],
        metrics=[Ari(), Miou()],
    )

    scores = celstack.run(assembly).scores

    assert scores["ari"] > 0.97
    assert scores["miou"] > 0.97

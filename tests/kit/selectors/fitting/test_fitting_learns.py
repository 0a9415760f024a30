"""With fitting, sprites are learned from images that show one of some things each."""

import torch

import celstack
from celstack import Assembly, Batch, Dataset, Evaluation, Stage, Training, Transforms
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.metrics.accuracy import Accuracy
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.fitting import Fitting
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color

SIDE = 16
KINDS = 4


class Signs(Dataset):
    """Discs with one of four marks, shifted, brighter or darker, on any ground."""

    splits = ("train",)
    image_shape = (3, SIDE, SIDE)

    def count(self, split):
        return 160

    def read(self, split, indices):
        made = [self._draw(index) for index in indices]
        images, labels = zip(*made, strict=True)
        return Batch(torch.stack(images), label=torch.tensor(labels))

    def _draw(self, index):
        random = torch.Generator().manual_seed(index)
        label = index % KINDS
        shift = torch.randint(-1, 2, (2,), generator=random)
        steps = torch.arange(SIDE) - (SIDE - 1) / 2
        y, x = steps[:, None] - shift[0], steps[None] - shift[1]
        from_center = (x.square() + y.square()).sqrt()
        marks = [x.abs() < 1.6, from_center < 2.6, (from_center - 4).abs() < 1.2, x * y > 0]
        disc = (from_center < 6)[None]
        inside = torch.where(marks[label].expand(SIDE, SIDE), 0.2, 0.9)
        gain, offset = (
            0.3 + 0.7 * torch.rand(1, generator=random),
            torch.rand(3, 1, 1, generator=random),
        )
        ground = torch.rand(3, 1, 1, generator=random)
        image = torch.where(disc, gain * inside + 0.3 * offset, ground)
        image = image + 0.02 * torch.randn(3, SIDE, SIDE, generator=random)
        return image.clamp(0, 1), label


def test_things_are_told_apart_and_cut_out():
    assembly = Assembly(
        dataset=Signs(),
        sprites=Pixels(count=KINDS, start="invariant_kmeans", mask_sigma=3.0),
        backgrounds=Pixels(count=1, start="mean"),
        transforms=Transforms(sprite=[Color(), Affine()], background=[Color()]),
        compositor=Ordered(layers=1),
        selector=Fitting(window=3.0, move_cost=0.1),
        training=Training(prototype_rate=2e-2, betas=(0.9, 0.99)),
        stages=[Stage(epochs=10)],
        evaluation=Evaluation(split="train", images=160),
        metrics=[Accuracy()],
    )

    trained = celstack.run(assembly)

    assert trained.scores["accuracy"] > 0.9
    masks = trained.decomposer.sprites.images()[:, -1].detach()
    assert (masks[:, 6:10, 6:10].mean((1, 2)) > 0.8).all()
    corners = torch.stack([masks[:, :2, :2], masks[:, -2:, -2:]]).clamp(0, 1)
    assert corners.mean() < 0.2

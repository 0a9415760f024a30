"""Images in which there is nothing to find end in an honest explanation, or in a message."""

import pytest
import torch

import celstack
from celstack import Assembly, Batch, CelstackError, Dataset, Stage, Training, Transforms
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.metrics.mse import Mse
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position


class Hopeless(Dataset):
    """One gray for all pixels, or noise."""

    image_shape = (3, 16, 16)

    def __init__(self, gray: float | None) -> None:
        self.gray = gray

    def count(self, split):
        return 16

    def read(self, split, indices):
        if self.gray is not None:
            return Batch(torch.full((len(indices), *self.image_shape), self.gray))
        own = torch.Generator()
        images = [
            torch.rand(self.image_shape, generator=own.manual_seed(index)) for index in indices
        ]
        return Batch(torch.stack(images))


def assembly(gray, *, empty_cost, backgrounds=None, size=(6, 6)):
    return Assembly(
        dataset=Hopeless(gray),
        sprites=Pixels(count=3, size=size, mask_sigma=1.5, jitter=0.05),
        backgrounds=backgrounds,
        transforms=Transforms(layer=[Color(), Position()]),
        compositor=Occlusion(layers=2),
        selector=Matching(empty_cost=empty_cost),
        training=Training(batch_size=4, reassign_every=2, prototype_rate=0.02),
        stages=[Stage(steps=8)],
        metrics=[Mse()],
    )


@pytest.mark.parametrize("empty_cost", [None, 1e-4])
@pytest.mark.parametrize("gray", [0.0, 0.5, 1.0, None])
@pytest.mark.parametrize("with_background", [False, True])
def test_training_goes_through(gray, empty_cost, with_background):
    background = Pixels(count=1, start="mean") if with_background else None

    trained = celstack.run(assembly(gray, empty_cost=empty_cost, backgrounds=background))

    weights = trained.decomposer.state_dict().values()
    assert all(torch.isfinite(weight).all() for weight in weights)


def test_blank_images_stay_empty():
    made = assembly(0.5, empty_cost=1e-4, backgrounds=Pixels(count=1, start="mean"))
    trained = celstack.run(made)

    scene = trained.decomposer.explain(made.dataset.read("test", range(4)).images)

    assert (scene.sprite == celstack.EMPTY).all()
    assert trained.scores["mse"] < 1e-4


def test_images_smaller_than_the_sprites_are_refused_before_there_is_a_run(tmp_path):
    with pytest.raises(CelstackError, match="20 x 20 pixels cannot be put on a canvas of 16"):
        celstack.run(assembly(0.5, empty_cost=None, size=(20, 20)), tmp_path)

    assert not list(tmp_path.iterdir())

"""What a metric is told, made by hand."""

import pytest
import torch

from celstack.interfaces.dataset import Batch
from celstack.scene import Rendering, Scene


def make(sprite, visible, colour=None, images=None, **truth):
    """Make images of one row: visible[image][layer][pixel] is what shows of each layer.

    Colours and images are grey, one value a pixel; truth of pixels is a row as well.
    """
    sprite, visible = torch.tensor(sprite), torch.tensor(visible, dtype=torch.float32)
    visible = visible[:, :, None]
    batch, layers, *canvas = visible.shape
    scene = Scene(
        sprite=sprite,
        sprite_params=torch.zeros(batch, layers, 0),
        layer_params=torch.zeros(batch, layers, 0),
        occlusion=torch.zeros(batch, layers, layers),
    )
    black = torch.zeros(batch, 3, *canvas)
    seen = black if images is None else grey(images)
    # An alpha that no metric should take for a colour.
    stack = torch.full((batch, layers, 4, *canvas), 0.77)
    stack[:, :, :3] = 0.0 if colour is None else grey(colour)
    known = {
        k: torch.tensor(v) if k == "label" else torch.tensor(v)[:, None]
        for k, v in truth.items()
    }
    return scene, Rendering(black, stack, black, visible), Batch(seen, **known)


def grey(values):
    """Give every value of a row three channels."""
    row = torch.tensor(values, dtype=torch.float32)[..., None, None, :]
    return row.repeat_interleave(3, dim=-3)


@pytest.fixture(scope="session")
def judged():
    """Return the maker of what a metric is told."""
    return make


@pytest.fixture(scope="session")
def shown():
    """Return the maker of what a metric is told by pixels that show one layer or none."""

    def show(labels, sprite, **rest):
        layers = torch.arange(1, len(sprite[0]) + 1)[:, None]
        visible = (torch.tensor(labels)[:, None] == layers).float()
        return make(sprite, visible.tolist(), **rest)

    return show


@pytest.fixture(scope="session")
def score_of():
    """Return what computes a metric over batches."""

    def compute(metric, *batches):
        for batch in batches:
            metric.update(*batch)
        return metric.compute()

    return compute

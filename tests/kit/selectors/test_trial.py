"""Of all that may become a sprite, what recurs is chosen."""

import pytest
import torch

from celstack import Decomposer
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.trial import Drawings, choose_drawings
from celstack_kit.transforms.position import Position

BAR, BLOCK, CROSS = torch.zeros(3, 8, 8).unbind()
BAR[3, 2:6] = 1.0
BLOCK[1:7, 1:7] = 1.0
CROSS[4, 2:7] = CROSS[2:7, 4] = 1.0


def white(*masks):
    masks = torch.stack(masks)[:, None]
    return torch.cat([torch.ones_like(masks).expand(-1, 3, -1, -1), masks], dim=1)


def on_black(*masks):
    images = torch.zeros(len(masks), 3, 16, 16)
    for number, mask in enumerate(masks):
        images[number, :, 2 + number : 10 + number, 4:12] = mask
    return images


@pytest.fixture
def model():
    model = Decomposer(
        sprites=Pixels(count=2, size=(8, 8)),
        layer_transforms=[Position()],
        compositor=Ordered(layers=1),
        selector=Matching(empty_cost=1e-4),
    )
    model.prepare(torch.rand(4, 3, 16, 16))
    with torch.no_grad():
        model.sprites.mask.zero_()
    return model


def test_what_recurs_is_chosen_not_what_is_largest_in_its_own_image(model):
    images = on_black(BLOCK, BAR, BAR, BAR, BAR)
    drawings = Drawings(white(BLOCK, BAR), torch.tensor([0, 1]))

    (chosen,) = choose_drawings(drawings, images, model, unused=[1])

    assert torch.equal(chosen[3], BAR)


def test_the_second_sprite_becomes_what_the_first_does_not_explain(model):
    images = on_black(BAR, BAR, BAR, CROSS, CROSS, CROSS, CROSS)
    drawings = Drawings(white(BAR, CROSS, CROSS), torch.tensor([0, 3, 4]))

    first, second = choose_drawings(drawings, images, model, unused=[1, 0])

    assert torch.equal(first[3], CROSS)
    assert torch.equal(second[3], BAR)


def test_sprites_themselves_stay_as_they_are(model):
    before = model.sprites.images().clone()

    choose_drawings(Drawings(white(BAR), torch.tensor([0])), on_black(BAR, BAR), model, [0])

    assert torch.equal(model.sprites.images(), before)


def test_no_more_are_chosen_than_were_drawn(model):
    one = Drawings(white(BAR), torch.tensor([0]))
    none = Drawings(white(BAR)[:0], torch.zeros(0, dtype=torch.long))

    assert len(choose_drawings(one, on_black(BAR, BAR), model, [0, 1])) == 1
    assert len(choose_drawings(none, on_black(BAR, BAR), model, [0, 1])) == 0

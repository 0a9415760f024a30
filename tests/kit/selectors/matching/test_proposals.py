"""Sprites that are one too many are noticed, and those that are missing are drawn."""

import math

import pytest
import torch

from celstack import Decomposer
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.pose_bank import render_variants
from celstack_kit.selectors.matching.proposals import (
    find_rotated_duplicates,
    find_shifted_duplicates,
    zoom_to_content,
)
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity

SQUARE = torch.zeros(8, 8).index_put_(
    (torch.tensor([[2], [3], [4]]), torch.arange(2, 5)), torch.ones(())
)
BAR = torch.zeros(8, 8).index_put_((torch.tensor([[3]]), torch.arange(1, 7)), torch.ones(()))


def sprites(*masks):
    masks = torch.stack(masks)[:, None]
    return torch.cat([torch.full_like(masks, 0.8).expand(-1, 3, -1, -1), masks], dim=1)


def test_a_shifted_copy_is_a_twin_and_another_shape_is_not():
    shifted = SQUARE.roll((2, -1), (0, 1))

    assert find_shifted_duplicates(sprites(SQUARE, BAR, shifted)) == [(0, 2)]


def test_sprites_that_differ_in_color_alone_are_no_twins():
    pair = sprites(SQUARE, SQUARE)
    pair[0, 0], pair[1, 1] = 0.0, 0.0

    assert find_shifted_duplicates(pair) == []


def test_sprites_without_anything_are_no_trouble():
    assert find_shifted_duplicates(sprites(torch.zeros(8, 8), torch.zeros(8, 8), BAR)) == []


@pytest.mark.parametrize("tint", [False, True])
def test_what_is_missing_is_drawn_where_it_is(tint):
    model = Decomposer(
        sprites=Pixels(count=1, size=(8, 8)),
        layer_transforms=[Color(), Position()] if tint else [Position()],
        compositor=Ordered(layers=1),
        selector=Matching(),
    )
    color = torch.tensor([0.5, 0.0, 0.25])[:, None, None]
    images = torch.zeros(3, 3, 16, 16)
    images[1, :, 5:13, 6:14] = color * BAR
    model.prepare(images)
    with torch.no_grad():
        model.sprites.mask.copy_(0.1 * SQUARE)
    scene = model.explain(images)

    drawn = model.selector.propose_sprites(images, scene, model, unused=[0])[0]

    assert find_shifted_duplicates(torch.stack([drawn, sprites(BAR)[0]])) == (
        [(0, 1)] if tint else []
    )
    opaque = drawn[3] > 0.5
    assert opaque.sum() == 6
    inside = torch.tensor([1.0]) if tint else color[:, 0]
    torch.testing.assert_close(drawn[:3, opaque], inside.expand(3, 6))


def test_nothing_is_drawn_of_images_that_are_explained():
    model = Decomposer(
        sprites=Pixels(count=1, size=(8, 8)),
        layer_transforms=[Position()],
        compositor=Ordered(layers=1),
        selector=Matching(empty_cost=1e-4),
    )
    images = torch.zeros(2, 3, 16, 16)
    model.prepare(images)

    assert (
        model.selector.propose_sprites(images, model.explain(images), model, unused=[0]) == {}
    )


def wedge_shape():
    """Draw a wedge that looks the same in no two directions."""
    rows, columns = torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij")
    return ((columns - 4) * 2 < rows + 16).float() * ((rows > 4) & (columns > 6)).float()


def turned(mask, angle, size):
    """Turn and shrink a mask. What is seen has half the resolution: twice the size is whole."""
    way = torch.tensor([[math.log(2 * size), angle]])
    return render_variants(sprites(mask), way, 48)[0, -1]


def test_a_turned_and_smaller_copy_is_a_twin_and_another_shape_is_not():
    wedge, disc = wedge_shape(), torch.zeros(24, 24)
    rows, columns = torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij")
    disc[(rows - 12) ** 2 + (columns - 12) ** 2 < 80] = 1.0
    copy = turned(wedge, 1.9, 0.8)

    assert find_rotated_duplicates(sprites(wedge, disc, copy)) == [(0, 2)]
    assert find_shifted_duplicates(sprites(wedge, disc, copy)) == []


def test_what_is_drawn_to_be_resized_is_made_large():
    small = torch.zeros(20, 20)
    small[2:6, 9:14] = 1.0

    (large,) = zoom_to_content(sprites(small))

    rows, columns = (large[-1] > 0.5).nonzero().unbind(1)
    assert int(columns.max() - columns.min()) + 1 == 16
    assert int(rows.max() - rows.min()) + 1 == pytest.approx(13, abs=1)
    assert float(columns.float().mean()) == pytest.approx(9.5, abs=0.5)


def test_what_is_drawn_is_framed_by_its_largest_piece():
    pieces = torch.zeros(20, 20)
    pieces[8:13, 2:8] = pieces[0, 16:] = pieces[19, 10:12] = 1.0

    (large,) = zoom_to_content(sprites(pieces))

    rows, columns = (large[-1] > 0.5).nonzero().unbind(1)
    assert int(columns.max() - columns.min()) + 1 == 16
    assert float(columns.float().mean()) == pytest.approx(9.5, abs=0.5)
    assert float(rows.float().mean()) == pytest.approx(9.5, abs=0.5)


def test_nothing_and_what_is_large_already_stay_as_they_are():
    whole = sprites(torch.ones(20, 20), torch.zeros(20, 20))

    torch.testing.assert_close(zoom_to_content(whole), whole)


def test_one_of_two_turned_twins_is_given_up_for_what_is_missing():
    wedge, bar = wedge_shape(), torch.zeros(24, 24)
    bar[2:22, 10:14] = 1.0
    images = torch.zeros(6, 3, 40, 40)
    for number, mask in enumerate([wedge, wedge, bar, bar, bar, bar]):
        images[number, :, 3 + number : 27 + number, 5:29] = mask
    model = Decomposer(
        sprites=Pixels(count=2, size=(24, 24)),
        sprite_transforms=[Similarity()],
        layer_transforms=[Color(), Position()],
        compositor=Ordered(layers=1),
        selector=Matching(turns=8, sizes=[1.0], refine=4),
    )
    model.prepare(images)
    for sprite, mask in enumerate([wedge, turned(wedge, 1.9, 0.8)]):
        model.sprites.redraw(sprite, sprites(mask)[0])

    drawn = model.selector.propose_sprites(images, model.explain(images), model, unused=[])

    assert model.selector.find_duplicates(model) == []
    assert len(drawn) == 1
    assert find_rotated_duplicates(torch.stack([*drawn.values(), sprites(bar)[0]])) == [(0, 1)]

"""Of all that may become a sprite, what recurs is chosen."""

import pytest
import torch

from celstack import Decomposer
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.proposal_trial import ProposalTrial
from celstack_kit.selectors.matching.proposals import Proposals
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


def shapes(chosen):
    return {target: drawing[3] for target, drawing in chosen.items()}


def learn(model, *masks):
    """Let sprites be white shapes."""
    for sprite, image in enumerate(white(*masks)):
        model.sprites.redraw(sprite, image)


def test_what_recurs_is_chosen_not_what_is_largest_in_its_own_image(model):
    images = on_black(BLOCK, BAR, BAR, BAR, BAR)
    trial = ProposalTrial(model, images, Proposals(white(BLOCK, BAR), torch.tensor([0, 1])))

    trial.fill_unused([1])

    torch.testing.assert_close(shapes(trial.accepted), {1: BAR})


def test_the_second_sprite_becomes_what_the_first_does_not_explain(model):
    images = on_black(BAR, BAR, BAR, CROSS, CROSS, CROSS, CROSS)
    drawings = Proposals(white(BAR, CROSS, CROSS), torch.tensor([0, 3, 4]))
    trial = ProposalTrial(model, images, drawings)

    trial.fill_unused([1, 0])

    torch.testing.assert_close(shapes(trial.accepted), {1: CROSS, 0: BAR})


def test_the_sprites_that_are_tried_stay_as_they_are(model):
    before = model.sprites.images().clone()

    ProposalTrial(
        model, on_black(BAR, BAR), Proposals(white(BAR), torch.tensor([0]))
    ).fill_unused([0])

    assert torch.equal(model.sprites.images(), before)


def test_no_more_are_chosen_than_were_drawn(model):
    one = ProposalTrial(model, on_black(BAR, BAR), Proposals(white(BAR), torch.tensor([0])))
    nothing = Proposals(white(BAR)[:0], torch.zeros(0, dtype=torch.long))
    none = ProposalTrial(model, on_black(BAR, BAR), nothing)

    for trial in (one, none):
        trial.fill_unused([0, 1])
        trial.replace_duplicate()

    assert list(one.accepted) == [0]
    assert none.accepted == {}


@pytest.mark.parametrize("blurred", [0, 1])
def test_the_worse_one_of_two_twins_is_given_up_for_something_better(model, blurred):
    blur = BLOCK.clone()
    blur[1] = 0.5
    learn(model, *((blur, BLOCK) if blurred == 0 else (BLOCK, blur)))
    images = on_black(BLOCK, BLOCK, BAR, BAR, BAR)
    trial = ProposalTrial(model, images, Proposals(white(BAR), torch.tensor([2])))

    trial.replace_duplicate()

    torch.testing.assert_close(shapes(trial.accepted), {blurred: BAR})


def test_twins_stay_where_nothing_better_is_drawn(model):
    learn(model, BLOCK, BLOCK)
    images = on_black(BLOCK, BLOCK, BLOCK, BAR)
    trial = ProposalTrial(model, images, Proposals(white(CROSS), torch.tensor([3])))

    trial.replace_duplicate()

    assert trial.accepted == {}


def test_sprites_that_differ_are_not_given_up(model):
    learn(model, BLOCK, CROSS)
    images = on_black(BAR, BAR, BAR, BAR)
    trial = ProposalTrial(model, images, Proposals(white(BAR), torch.tensor([0])))

    trial.replace_duplicate()

    assert trial.accepted == {}


def test_only_one_is_given_up_at_a_time(model):
    blur = 0.7 * BLOCK
    learn(model, blur, blur)
    images = on_black(BLOCK, BLOCK, BAR, BAR, BAR)
    drawings = Proposals(white(BLOCK, BAR), torch.tensor([0, 2]))
    trial = ProposalTrial(model, images, drawings)

    trial.replace_duplicate()

    assert len(trial.accepted) == 1

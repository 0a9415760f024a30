import pytest
import torch

from celstack.evaluation.usage import Usage
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Training
from celstack.scene import EMPTY
from celstack.training.optimizer import build_optimizer
from celstack.training.reassign import JITTER, copy_sprite, reassign_unused
from celstack.training.step import take_step
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.affine import Affine


@pytest.fixture
def trained():
    return train()


def train(**sprites):
    """Return a model of three sprites and two layers that has taken a step."""
    torch.manual_seed(0)
    model = Decomposer(
        sprites=Pixels(count=3, size=(4, 4), jitter=0.3, **sprites),
        sprite_transforms=[Affine()],
        compositor=Ordered(layers=2),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=2, features=4), hidden=4),
    )
    images = torch.rand(4, 3, 6, 6)
    model.prepare(images)
    optimizer = build_optimizer(model, Training())
    take_step(model, optimizer, images, mask_noise=0.4)
    return model, optimizer


def counted(*sprites):
    usage = Usage(3)
    usage.add(torch.tensor([sprites]))
    return usage


def test_usage_counts_over_all_layers_and_leaves_out_the_empty_ones():
    usage = Usage(3)

    usage.add(torch.tensor([[0, 2], [2, EMPTY]]))

    assert usage.counts.tolist() == [1, 0, 2]
    assert usage.most_used() == 2


def test_a_sprite_below_its_share_is_unused():
    usage = Usage(2)
    usage.add(torch.tensor([[0] * 89 + [1] * 11]))

    assert usage.unused(0.2, relative_to_most=False) == []  # 0.11 is not below 0.2 / 2
    assert usage.unused(0.3, relative_to_most=False) == [1]


def test_where_nothing_was_used_nobody_is_unused():
    usage = Usage(3)
    usage.add(torch.tensor([[EMPTY, EMPTY]]))

    assert usage.unused(0.2, relative_to_most=True) == []
    assert usage.unused(0.2, relative_to_most=False) == []


def test_with_empty_layers_usage_is_relative_to_the_most_used():
    usage = Usage(2)
    usage.add(torch.tensor([[0] * 90 + [1] * 10]))

    assert usage.unused(0.21, relative_to_most=False) == [1]  # 0.1 of all, below 0.105
    assert usage.unused(0.21, relative_to_most=True) == []  # 0.111 of the most used


def test_a_copy_has_the_pixels_of_its_source_but_for_a_little_noise(trained):
    model, optimizer = trained

    copy_sprite(model, optimizer, targets=[1], source=0)

    images = model.sprites.images().detach()
    difference = (images[1] - images[0]).abs().max()
    assert 0 < difference < 10 * JITTER
    assert (images[2] - images[0]).abs().max() > 0.1


def test_the_colors_of_silhouettes_get_no_noise():
    model, optimizer = train(learn_colors=False)

    copy_sprite(model, optimizer, targets=[1], source=0)

    images = model.sprites.images().detach()
    assert (images[:, :3] == images[0, 0, 0, 0]).all()
    assert (images[1, 3] != images[0, 3]).any()


def test_a_copy_has_the_heads_of_its_source_on_every_layer(trained):
    model, optimizer = trained
    with torch.no_grad():
        for parameter, _ in model.predictor.per_sprite():
            parameter.normal_()

    copy_sprite(model, optimizer, targets=[1], source=0)

    for parameter, axis in model.predictor.per_sprite():
        assert torch.equal(parameter.select(axis, 1), parameter.select(axis, 0))
        assert not torch.equal(parameter.select(axis, 2), parameter.select(axis, 0))


def test_a_copy_has_the_moments_of_its_source_and_does_not_share_them(trained):
    model, optimizer = trained
    parameters = [*((p, 0) for p in model.sprites.per_image()), *model.predictor.per_sprite()]

    copy_sprite(model, optimizer, targets=[1], source=0)

    for parameter, axis in parameters:
        for name in ("exp_avg", "exp_avg_sq"):
            moment = optimizer.state[parameter][name]
            assert torch.equal(moment.select(axis, 1), moment.select(axis, 0))
            moment.select(axis, 0).add_(1.0)
            assert not torch.equal(moment.select(axis, 1), moment.select(axis, 0))


def test_frozen_sprites_are_left_alone(trained):
    model, optimizer = trained
    model.sprites_frozen = True
    before = model.sprites.images().clone()

    assert reassign_unused(model, optimizer, counted(0, 0), below=0.2) == []

    assert torch.equal(model.sprites.images(), before)


def test_counting_begins_anew_after_a_check(trained):
    usage = counted(0, 1)

    assert reassign_unused(*trained, usage, below=0.2) == [2]

    assert not usage.counts.any()


class Telling(Greedy):
    """Says which sprites are twins, and what is missing."""

    name = "telling"

    def find_duplicates(self, decomposer):
        return [(0, 1), (1, 2)]

    def propose_sprites(self, images, scene, decomposer, unused):
        return {unused[0]: torch.full((4, 4, 4), 0.25)}


def test_the_less_used_of_two_twins_is_unused_and_its_twin_then_has_none(trained):
    model, optimizer = trained
    model.selector = Telling()

    assert reassign_unused(model, optimizer, counted(0, 0, 1, 2, 2), below=0.0) == [1]


def test_an_unused_sprite_is_drawn_as_what_is_missing_and_remembers_nothing(trained):
    model, optimizer = trained
    model.selector = Telling()
    before = model.sprites.images().clone()
    images = torch.rand(4, 3, 6, 6)
    for parameter in model.sprites.per_image():
        optimizer.state[parameter]["exp_avg"].fill_(1.0)

    reassign_unused(
        model, optimizer, counted(0, 0, 1, 2, 2), 0.0, (images, model.explain(images))
    )

    after = model.sprites.images()
    assert (after[1] == 0.25).all()
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    for parameter in model.sprites.per_image():
        remembered = optimizer.state[parameter]["exp_avg"].flatten(1)[:, 0]
        assert remembered.tolist() == [1.0, 0.0, 1.0]


def test_sprites_for_which_nothing_is_drawn_are_copies(trained):
    model, optimizer = trained
    model.selector = Telling()
    images = torch.rand(4, 3, 6, 6)

    again = reassign_unused(
        model, optimizer, counted(2, 2, 2), 0.2, (images, model.explain(images))
    )

    assert again == [0, 1]
    after = model.sprites.images()
    assert (after[0] == 0.25).all()
    torch.testing.assert_close(after[1], after[2], atol=10 * JITTER, rtol=0.0)


class GivingUp(Greedy):
    """Says that a sprite in use should be something else."""

    name = "giving_up"

    def propose_sprites(self, images, scene, decomposer, unused):
        return {2: torch.full((4, 4, 4), 0.25)}


def test_a_sprite_that_is_used_starts_again_if_the_selector_gives_it_up(trained):
    model, optimizer = trained
    model.selector = GivingUp()
    before = model.sprites.images().clone()
    images = torch.rand(4, 3, 6, 6)

    again = reassign_unused(
        model, optimizer, counted(0, 1, 2), 0.0, (images, model.explain(images))
    )

    assert again == [2]
    after = model.sprites.images()
    assert (after[2] == 0.25).all()
    assert torch.equal(after[:2], before[:2])

"""A transform is prepared for a canvas, and says how many parameters it has."""

import pytest
import torch

from celstack.errors import CelstackError
from celstack.interfaces.transform import Transform
from celstack.recipe.assembly import Assembly, Stage, Transforms
from celstack.recipe.consistency import check_consistency
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
)
from celstack.testing.transforms import check_transform
from celstack.training.initialize import init_model


class OnCanvas(PlainTransform):
    """Has to know how large the canvas is."""

    def prepare(self, channels, canvas):
        self.told = channels, canvas


class Later(OnCanvas):
    """Takes the canvas by the way, and leaves it to another class."""

    def prepare(self, channels, **others):
        super().prepare(channels, **others)


class OfOldTimes(PlainTransform):
    """Prepared as in 0.1.0."""

    def prepare(self, channels):
        self.told = channels


class Wrapper(PlainTransform):
    """A wrapper as in 0.1.0, which passes no canvas on."""

    def __init__(self, inner: Transform) -> None:
        super().__init__()
        self.inner = inner

    def prepare(self, channels):
        self.inner.prepare(channels)


class Uncounted(Transform):
    """Does not say how many parameters it has."""

    forward = PlainTransform.forward


class Miscounted(Uncounted):
    """Says it in words."""

    num_params = "one"


class CountedLate(Uncounted):
    """Counts in prepare."""

    def prepare(self, channels, canvas):
        self.num_params = 1


def make(*transforms, stage=None):
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(empty_cost=None),
        predictor=PlainPredictor(),
        transforms=Transforms(layer=list(transforms)),
        stages=[stage or Stage(steps=1)],
    )


@pytest.mark.parametrize(
    ("transform", "told"), [(OnCanvas, (3, (8, 10))), (Later, (3, (8, 10))), (OfOldTimes, 3)]
)
def test_it_is_told_what_it_asks_for(transform, told):
    (prepared,) = init_model(make(transform())).layer_chain

    assert prepared.told == told
    check_transform(transform())


def test_a_wrapper_of_old_times_can_wrap_any_transform_that_has_no_need_of_the_canvas():
    chain = init_model(make(Wrapper(OfOldTimes()), Wrapper(PlainTransform()))).layer_chain

    assert next(iter(chain)).inner.told == 3


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (Uncounted, "uncounted: num_params is missing"),
        (Miscounted, "miscounted: num_params is 'one'"),
    ],
)
def test_one_that_does_not_count_its_parameters_is_named_in_one_line(transform, text):
    (problem,) = check_consistency(make(PlainTransform(), transform()))

    assert problem.place == "transforms.layer[1]"
    assert problem.text.startswith(text)
    with pytest.raises(AssertionError, match="num_params, set by the class or in prepare"):
        check_transform(transform())


def test_one_that_fails_in_prepare_is_named_in_one_line():
    class Clumsy(PlainTransform):
        def prepare(self, channels):
            raise ZeroDivisionError("by zero")

    (problem,) = check_consistency(make(Clumsy()))

    assert problem.text == "clumsy fails in prepare: ZeroDivisionError: by zero"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ZeroDivisionError("by zero"), "clumsy fails in prepare: ZeroDivisionError: by zero"),
        (CelstackError("too small"), "too small"),
    ],
)
def test_a_compositor_that_fails_in_prepare_is_named_in_one_line(error, text):
    class Clumsy(PlainCompositor):
        def prepare(self, image_shape):
            raise error

    assembly = make(PlainTransform())
    object.__setattr__(assembly, "compositor", Clumsy())

    (problem,) = check_consistency(assembly)

    assert (problem.place, problem.text) == ("compositor", text)


class Still(PlainPrototype):
    """Images that do not learn."""

    def prepare(self, sample, with_alpha):
        super().prepare(sample, with_alpha)
        self.requires_grad_(False)


class Constant(PlainTransform):
    """Has a parameter that does not learn."""

    def prepare(self, channels):
        self.weight = torch.nn.Parameter(torch.ones(1), requires_grad=False)


class Alone(PlainSelector):
    """Needs no predictor."""

    def check(self, decomposer):
        pass


@pytest.mark.parametrize(
    ("backgrounds", "transforms", "learns"),
    [
        (None, Transforms(layer=[Constant()]), False),
        (Still(1), Transforms(), False),
        (Still(1), Transforms(layer=[Constant()], background=[PlainTransform()]), False),
        (PlainPrototype(1), Transforms(), True),
    ],
)
def test_a_stage_in_which_nothing_learns_is_refused(backgrounds, transforms, learns):
    assembly = Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        backgrounds=backgrounds,
        compositor=PlainCompositor(),
        selector=Alone(empty_cost=None),
        transforms=transforms,
        stages=[Stage(steps=1, freeze_sprites=True)],
    )
    before = torch.get_rng_state()

    problems = check_consistency(assembly)

    text = "sprites are frozen, and there is nothing else that could learn"
    assert [(p.place, p.text) for p in problems] == ([] if learns else [("stages[0]", text)])
    assert torch.equal(torch.get_rng_state(), before)


def test_poses_of_backgrounds_that_do_not_learn_can_be_learned():
    assembly = make(stage=Stage(steps=1, freeze_sprites=True))
    object.__setattr__(assembly, "backgrounds", Still(1))
    object.__setattr__(assembly, "transforms", Transforms(background=[PlainTransform()]))

    assert check_consistency(assembly) == []


def test_parameters_that_are_counted_in_prepare_can_learn_while_sprites_are_frozen():
    assert (
        check_consistency(make(CountedLate(), stage=Stage(steps=1, freeze_sprites=True))) == []
    )


@pytest.mark.parametrize(
    ("part", "place", "text"),
    [
        (PlainPrototype(), "sprites", "plain_prototype has no count"),
        (PlainCompositor(), "compositor", "plain_compositor has no layers"),
        (PlainSelector(), "selector", "plain_selector has no empty_cost"),
    ],
)
def test_a_part_without_an_attribute_of_its_kind_is_named_in_one_line(part, place, text):
    delattr(part, part.needed[0])
    assembly = make()
    object.__setattr__(assembly, place, part)

    (problem,) = check_consistency(assembly)

    assert (problem.place, problem.text.split(";")[0]) == (place, text)


def test_gradients_have_to_reach_weights_of_its_own():
    class Deaf(PlainTransform):
        def prepare(self, channels):
            self.weight = torch.nn.Parameter(torch.ones(1))

    with pytest.raises(AssertionError, match="gradients reach its parameters, but not"):
        check_transform(Deaf())

"""Errors that weights without bounds have caused are told as such; others are left alone."""

import pytest
import torch

from celstack.errors import CelstackError, RunFailedError
from celstack.model.divergence import DivergedError
from celstack.recipe.assembly import Assembly, Stage, Training
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
)
from celstack.training.loop import run


def invert(decomposer):
    """Fail as torch does where numbers are too large."""
    size = decomposer.sprites.pixels.detach().abs().max()
    torch.linalg.inv(torch.eye(2) if size < 1e5 else torch.zeros(2, 2))


class Solving(PlainSelector):
    """Computes with matrices, as long as there is something to compute."""

    def explain(self, images, decomposer, noise, allow_empty):
        invert(decomposer)
        return super().explain(images, decomposer, noise, allow_empty)


class Teaching(Solving):
    """Fails likewise, when it is asked for new sprites."""

    def find_duplicates(self, decomposer):
        invert(decomposer)
        return []

    explain = PlainSelector.explain


def make(steps, rate, selector=None, **training):
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=selector or Solving(empty_cost=None),
        predictor=PlainPredictor(),
        stages=[Stage(steps=steps)],
        training=Training(batch_size=4, prototype_rate=rate, mask_noise=0.0, **training),
    )


def refusal(act):
    with pytest.raises(RunFailedError) as refused:
        act()
    (line,) = str(refused.value).splitlines()
    return line


def test_a_rate_that_blows_weights_up_is_named_with_the_step(tmp_path):
    line = refusal(lambda: run(make(5, 1e20), tmp_path))

    assert line == (
        "step 2: the weights of sprites.pixels are up to 1.0e+20, too large to compute with; "
        "try lower learning rates; the checkpoint of step 1 is kept"
    )


def test_so_it_is_where_the_model_is_evaluated():
    line = refusal(lambda: run(make(1, 1e20)))

    assert line.startswith("the weights of sprites.pixels are up to 1.0e+20, too large")


def test_so_it_is_where_sprites_are_reassigned():
    selector = Teaching(empty_cost=None)

    line = refusal(lambda: run(make(5, 1e20, selector, reassign_every=1, reassign_below=1.0)))

    assert line.startswith("step 1: the weights of sprites.pixels are up to 1.0e+20")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e7])
def test_weights_that_are_too_large_or_not_finite_are_blamed(value):
    decomposer = plain_decomposer(Solving())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    torch.nn.init.constant_(decomposer.sprites.pixels, value)

    with pytest.raises(DivergedError, match="try lower learning rates"):
        decomposer.explain(torch.rand(1, 3, 8, 8))


class Broken(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        raise ValueError("a mistake of mine")


def test_a_mistake_of_the_selector_stays_its_own():
    with pytest.raises(ValueError, match="a mistake of mine"):
        run(make(1, 1e-3, Broken()))


class Refusing(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        raise CelstackError("not these images")


def test_what_the_selector_says_is_not_replaced():
    decomposer = plain_decomposer(Refusing())
    decomposer.prepare(torch.rand(2, 3, 8, 8))
    torch.nn.init.constant_(decomposer.sprites.pixels, torch.inf)

    with pytest.raises(CelstackError, match="not these images"):
        decomposer.explain(torch.rand(1, 3, 8, 8))

"""What the docstrings for authors of candidate selectors show, works as they say."""

import inspect
import re
import textwrap

import pytest
import torch

from celstack.geometry.windows import Windows
from celstack.model.candidate_selector import CandidateSelector
from celstack.model.candidates import Candidates, render_candidates
from celstack.model.objective import squared_error
from celstack.scene import EMPTY
from celstack.testing import check_selector
from celstack.testing.model import PlainSelector, plain_decomposer
from celstack_kit.selectors.exhaustive import Exhaustive

IMAGES = 4


def example(documented):
    """Return the indented block of a docstring that follows a double colon."""
    text = inspect.getdoc(documented)
    return textwrap.dedent(re.search(r"::\n\n((?:    .*\n|\n)+)", text)[1])


@pytest.fixture
def one_by_one():
    names = {}
    exec(example(CandidateSelector), names)
    return names["OneByOne"]


def model(selector, layers, background=False):
    torch.manual_seed(3)
    made = plain_decomposer(selector, layers=layers, with_background=background)
    made.prepare(torch.rand(IMAGES, 3, 6, 8))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


@pytest.mark.parametrize("empty_cost", [None, 0.01])
def test_the_selector_keeps_the_laws(one_by_one, empty_cost):
    check_selector(one_by_one(empty_cost))


@pytest.mark.parametrize("empty_cost", [None, 0.05])
def test_the_selector_finds_the_best_choice_of_one_layer(one_by_one, empty_cost):
    images = torch.rand(IMAGES, 3, 6, 8)
    allowed = empty_cost is not None
    images[0] = 0.0

    chosen, best = (
        selector.explain(images, model(selector, 1), None, allowed).sprite
        for selector in (one_by_one(empty_cost), Exhaustive(empty_cost))
    )

    assert torch.equal(chosen, best)
    assert (EMPTY in chosen) == allowed


def test_candidates_are_what_is_rendered_over_a_backdrop():
    made = model(PlainSelector(), 1, background=True)
    images = torch.rand(IMAGES, 3, 6, 8)
    prediction = made.predict(images)
    noise = made.draw_noise(0.4)
    (candidates,) = render_candidates(made, prediction, noise)
    backdrop = made.render_backgrounds(prediction.background_params)[:, 0].detach()
    names = {"candidates": candidates, "images": images, "backdrop": backdrop}

    exec(example(Candidates), names)

    scene = made.explain(images)
    outside = (images - backdrop).square().sum((1, 2, 3))
    outside -= (names["inside"] - names["behind"]).square().sum((1, 2, 3, 4))
    assert len(candidates.windows) == IMAGES
    for sprite in range(made.sprites.count):
        shown = scene.evolve(
            sprite=torch.full_like(scene.sprite, sprite),
            sprite_params=prediction.sprite_params[:, :, sprite],
        )
        whole = squared_error(images, made.render(shown, noise).image) * images[0].numel()
        torch.testing.assert_close(names["error"][:, sprite] + outside, whole.detach())
    assert torch.equal(names["best"], names["error"].argmin(1))


def test_windows_are_cut_and_pasted():
    names = {"torch": torch, "Windows": Windows}

    exec(example(Windows), names)

    inside, canvases = names["inside"], names["canvases"]
    assert torch.equal(inside, torch.stack([names["first"], names["second"]]))
    assert torch.equal(canvases, names["windows"].spread(inside))
    assert torch.equal(names["windows"].cut(canvases), inside)
    assert canvases.count_nonzero() == inside.count_nonzero()

"""Greedy is Algorithm 1 and exhaustive is the minimum, on many random small problems."""

from inspect import unwrap

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from celstack.geometry.windows import Windows
from celstack.model.candidates import Candidates
from celstack_kit.selectors.exhaustive import Exhaustive
from celstack_kit.selectors.greedy import Greedy, choose_by_layers, numba_cpu


class Problem:
    """Random candidates for a few images, as selectors and as naive code want them."""

    def __init__(self, seed, layers, sprites, backgrounds, images=8):
        torch.manual_seed(seed)
        channels, height, width = 2, 3, 4
        self.images = torch.rand(images, channels, height, width).double()
        self.backdrops = torch.rand(images, backgrounds, channels, height, width).double()
        lower = torch.rand(images, layers, layers).double().tril(-1)
        self.occlusion = lower + (1 - lower.mT).triu(1)
        windows, inside = [], []
        for _ in range(layers):
            tall, wide = (int(torch.randint(1, most + 1, ())) for most in (height, width))
            tops = torch.randint(height - tall + 1, (images,)).tolist()
            lefts = torch.randint(width - wide + 1, (images,)).tolist()
            windows.append(Windows((height, width), tall, wide, tops, lefts))
            layer = torch.rand(images, sprites, channels + 1, tall, wide).double()
            # None that cannot be seen at all: it would be as good as an empty layer.
            layer[:, :, -1] = (layer[:, :, -1] * 1.6 - 0.3).clamp(0.01, 1)
            inside.append(layer)
        pairs = list(zip(windows, inside, strict=True))
        self.candidates = [
            Candidates(window, layer[:, :, :-1] * layer[:, :, -1:], layer[:, :, -1])
            for window, layer in pairs
        ]
        canvases = [
            window.spread(layer.flatten(1, 2)).unflatten(1, (sprites, -1))
            for window, layer in pairs
        ]
        self.shown = torch.stack(canvases, dim=1)

    def choose(self, selector, price):
        sprite, background = selector.choose(
            self.images,
            self.candidates,
            self.backdrops,
            self.occlusion,
            price,
        )
        return [
            (chosen.tolist(), int(which))
            for chosen, which in zip(sprite, background, strict=True)
        ]

    def each(self):
        return zip(self.images, self.shown, self.backdrops, self.occlusion, strict=True)


problems = st.builds(
    Problem,
    seed=st.integers(0, 2**31),
    layers=st.integers(1, 3),
    sprites=st.integers(1, 4),
    backgrounds=st.integers(1, 2),
)
prices = st.sampled_from([None, 0.0, 1e-3, 1e-2, 1e-1])


class ByLayers(Greedy):
    """Greedy as it is on accelerators."""

    def choose(self, *given):
        return choose_by_layers(*given, self.sweeps)


@pytest.mark.parametrize("greedy", [Greedy, ByLayers])
@given(problem=problems, price=prices, sweeps=st.integers(1, 3))
@settings(max_examples=250, deadline=None)
def test_greedy_is_algorithm_1(greedy, problem, price, sweeps):
    chosen = problem.choose(greedy(sweeps=sweeps), price)

    for choice, (image, shown, backdrops, occlusion) in zip(
        chosen, problem.each(), strict=True
    ):
        assert choice == naive.algorithm_1(image, shown, backdrops, occlusion, sweeps, price)


@given(problem=problems, price=prices)
@settings(max_examples=250, deadline=None)
def test_exhaustive_is_the_minimum_over_everything(problem, price):
    chosen = problem.choose(Exhaustive(), price)

    for choice, (image, shown, backdrops, occlusion) in zip(
        chosen, problem.each(), strict=True
    ):
        assert choice == naive.minimum(image, shown, backdrops, occlusion, price)


@given(problem=problems, price=st.sampled_from([0.0, 1e-3, 1e-2]), sweeps=st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_greedy_never_ends_worse_than_it_started(problem, price, sweeps):
    chosen = problem.choose(Greedy(sweeps=sweeps), price)

    for (choice, which), (image, shown, backdrops, occlusion) in zip(
        chosen, problem.each(), strict=True
    ):
        arguments = (image, shown, backdrops, occlusion)
        nothing = [naive.EMPTY] * len(shown)
        start = naive.cost(*arguments, nothing, 0, price)
        assert naive.cost(*arguments, choice, which, price) <= start + 1e-12


@given(problem=problems, price=st.sampled_from([None, 1e-3]))
@settings(max_examples=50, deadline=None)
def test_more_sweeps_never_hurt(problem, price):
    costs = []
    for sweeps in (1, 2, 6):
        chosen = problem.choose(Greedy(sweeps=sweeps), price)
        costs.append(
            [
                float(naive.cost(*arguments, choice, which, price))
                for (choice, which), arguments in zip(chosen, problem.each(), strict=True)
            ]
        )

    for one, two, six in zip(*costs, strict=True):
        assert one + 1e-12 >= two
        assert two + 1e-12 >= six


def test_greedy_stops_when_a_sweep_changes_nothing():
    problem = Problem(seed=0, layers=2, sprites=3, backgrounds=2)

    chosen = problem.choose(Greedy(sweeps=10**7), None)

    assert chosen == problem.choose(Greedy(sweeps=50), None)


@pytest.mark.parametrize("threads", [1, 3, 9])
def test_greedy_chooses_the_same_with_any_number_of_threads(monkeypatch, threads):
    problem = Problem(seed=2, layers=3, sprites=3, backgrounds=2)
    expected = problem.choose(Greedy(sweeps=2), 1e-3)

    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)

    assert problem.choose(Greedy(sweeps=2), 1e-3) == expected


@pytest.mark.parametrize("price", [None, 1e-3])
def test_a_price_decides_between_a_weak_sprite_and_none(price):
    problem = Problem(seed=1, layers=1, sprites=2, backgrounds=1, images=1)
    problem.images[:] = problem.backdrops[:, 0]

    ((chosen, _),) = problem.choose(Greedy(), price)

    assert (chosen == [naive.EMPTY]) == (price is not None)


@pytest.mark.parametrize("greedy", [Greedy, ByLayers])
@pytest.mark.parametrize("price", [None, 1e-3])
def test_a_candidate_that_is_not_a_number_is_chosen_so_that_the_loss_tells(greedy, price):
    problem = Problem(seed=3, layers=1, sprites=3, backgrounds=1, images=1)
    problem.candidates[0].paint[:, 1] = torch.nan

    ((chosen, _),) = problem.choose(greedy(), price)

    assert chosen == [1]


@pytest.mark.parametrize("greedy", [Greedy, ByLayers])
def test_no_layer_is_empty_without_a_price_however_bad_all_candidates_are(greedy):
    problem = Problem(seed=4, layers=2, sprites=3, backgrounds=1, images=1)
    for mine in problem.candidates:
        mine.paint[:] = 1e200

    ((chosen, _),) = problem.choose(greedy(sweeps=2), None)

    assert naive.EMPTY not in chosen


@pytest.mark.parametrize("wrong", ["candidates", "masks", "backdrops", "occlusion"])
def test_what_does_not_fit_together_is_refused(wrong):
    problem = Problem(seed=5, layers=2, sprites=2, backgrounds=1)
    one, other = problem.candidates
    if wrong == "candidates":
        other = Candidates(other.windows, other.paint[:, :, :1], other.alpha)
    elif wrong == "masks":
        other = Candidates(other.windows, other.paint, other.alpha[:1])
    elif wrong == "backdrops":
        problem.backdrops = problem.backdrops[:1]
    else:
        problem.occlusion = problem.occlusion[:1]
    given = (problem.images, [one, other], problem.backdrops, problem.occlusion)

    with pytest.raises(ValueError, match=f"{wrong} of shape"):
        unwrap(numba_cpu.choose)(*given, None, 1)

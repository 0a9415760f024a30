"""Greedy: select sprites layer by layer, each time the one with the lowest error."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import EMPTY, Candidates, CandidateSelector, hookimpl
from celstack.model import LayerStack
from celstack.model.numba_jit import supports


class Greedy(CandidateSelector):
    """Algorithm 1 of the paper, for at most ``sweeps`` sweeps over the layers.

    With ``empty_cost``, the price lambda of Eq. 5, a layer may stay empty. Where there are
    several backgrounds, each sweep begins by selecting the best one.
    """

    def __init__(
        self,
        sweeps: Annotated[int, Ge(1)] = 1,
        empty_cost: Annotated[float, Ge(0)] | None = None,
    ) -> None:
        self.sweeps = sweeps
        self.empty_cost = empty_cost

    def choose(
        self,
        images: Float[Tensor, "B C H W"],
        candidates: list[Candidates],
        backdrops: Float[Tensor, "B M C H W"],
        occlusion: Float[Tensor, "B L L"],
        price: float | None,
    ) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
        """Return the sprite of every layer, and the background, of each image."""
        if supports(images):
            from celstack_kit.selectors.greedy import numba_cpu

            find = numba_cpu.choose
        else:
            find = choose_by_layers
        return find(images, candidates, backdrops, occlusion, price, self.sweeps)


def choose_by_layers(
    images: Float[Tensor, "B C H W"],
    candidates: list[Candidates],
    backdrops: Float[Tensor, "B M C H W"],
    occlusion: Float[Tensor, "B L L"],
    price: float | None,
    sweeps: int,
) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """Run the sweeps with torch, one layer of all images at a time.

    There is no early exit: testing for convergence would synchronize the accelerator.
    """
    everyone = torch.arange(len(images), device=images.device)
    background = torch.zeros_like(everyone)
    stack = LayerStack(backdrops[:, 0], occlusion, [mine.windows for mine in candidates])
    for _ in range(sweeps):
        if backdrops.shape[1] > 1:
            background = _best_background(images, backdrops, stack)
            stack.set_backdrop(backdrops[everyone, background])
        chosen = []
        stack.begin_sweep()
        for layer, mine in enumerate(candidates):
            saved, best = stack.gains(layer, images, mine).max(1)
            alpha, paint = mine.alpha[everyone, best], mine.paint[everyone, best]
            if price is not None:
                # NaN counts as filled, so that it reaches the loss.
                filled = ~(saved <= price * images[0].numel())
                best = torch.where(filled, best, EMPTY)
                alpha *= filled[:, None, None]
                paint *= filled[:, None, None, None]
            stack.put(layer, paint, alpha)
            chosen.append(best)
    return torch.stack(chosen, dim=1), background


def _best_background(
    images: Float[Tensor, "B C H W"], backdrops: Float[Tensor, "B M C H W"], stack: LayerStack
) -> Int[Tensor, " B"]:
    layers, shows = stack.uncovered()
    errors = (images - layers)[:, None] - shows[:, None, None] * backdrops
    return errors.square().sum((2, 3, 4)).argmin(1)


@hookimpl
def celstack_selectors() -> dict[str, type[Greedy]]:
    """Let recipes say ``use = "greedy"``."""
    return {"greedy": Greedy}

"""Greedy: choose sprites layer by layer, each time the one that explains most."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import EMPTY, Candidates, CandidateSelector, hookimpl
from celstack.stack import Stack


class Greedy(CandidateSelector):
    """Algorithm 1 of the paper, for at most ``sweeps`` sweeps over the layers.

    With ``empty_cost``, the price lambda of Eq. 5, a layer may stay empty. Where there are
    several backgrounds, each sweep begins with the one that fits best.
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
        images: Float[Tensor, "B C N"],
        candidates: list[Candidates],
        backdrops: Float[Tensor, "B M C N"],
        occlusion: Float[Tensor, "B L L"],
        price: float | None,
    ) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
        """Return the sprite of every layer, and the background."""
        batch, layers = len(images), len(candidates)
        everyone = torch.arange(batch, device=images.device)
        sprite = torch.full((batch, layers), EMPTY, device=images.device)
        background = torch.zeros_like(everyone)
        stack = Stack(backdrops[:, 0], occlusion)
        for _ in range(self.sweeps):
            before = sprite.clone(), background
            if backdrops.shape[1] > 1:
                background = _best_background(images, backdrops, stack)
                stack.set_backdrop(backdrops[everyone, background])
            stack.begin_sweep()
            for layer in range(layers):
                mine = candidates[layer]
                saved, best = stack.gains(layer, images, mine).max(1)
                filled = torch.ones_like(best, dtype=torch.bool)
                if price is not None:
                    filled = saved > price * images[0].numel()
                sprite[:, layer] = torch.where(filled, best, EMPTY)
                alpha = mine.alpha[everyone, best] * filled[:, None]
                stack.put(layer, mine.colour[everyone, best], alpha, mine.pixels)
            # Asking costs a round trip to an accelerator, where sweeps are cheap.
            if images.device.type == "cpu" and all(
                map(torch.equal, before, (sprite, background))
            ):
                break
        return sprite, background


def _best_background(
    images: Float[Tensor, "B C N"], backdrops: Float[Tensor, "B M C N"], stack: Stack
) -> Int[Tensor, " B"]:
    layers, shows = stack.uncovered()
    errors = (images - layers)[:, None] - shows[:, None, None] * backdrops
    return errors.square().sum((2, 3)).argmin(1)


@hookimpl
def celstack_selectors() -> dict[str, type[Greedy]]:
    """Let recipes say ``use = "greedy"``."""
    return {"greedy": Greedy}

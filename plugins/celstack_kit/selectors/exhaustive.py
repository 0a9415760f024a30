"""Exhaustive: try every combination of sprites and backgrounds."""

import math
from itertools import product
from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import (
    EMPTY,
    Candidates,
    CandidateSelector,
    CelstackError,
    Decomposer,
    hookimpl,
)
from celstack.model import LayerStack


class Exhaustive(CandidateSelector):
    """The global minimum of Eq. 5 over all (K+1)^L combinations and all backgrounds.

    With ``empty_cost``, the price lambda of Eq. 5, a layer may stay empty. Models with more
    than ``most`` combinations are refused.
    """

    def __init__(
        self,
        empty_cost: Annotated[float, Ge(0)] | None = None,
        most: Annotated[int, Ge(1)] = 1000,
    ) -> None:
        self.empty_cost = empty_cost
        self.most = most

    def check(self, decomposer: Decomposer) -> None:
        """Raise CelstackError if the model has too many combinations."""
        super().check(decomposer)
        layers = decomposer.compositor.layers
        choices = decomposer.sprites.count + (self.empty_cost is not None)
        backgrounds = decomposer.backgrounds.count if decomposer.backgrounds is not None else 1
        # In logarithms, since the power itself may be huge.
        if layers * math.log(choices) + math.log(backgrounds) > math.log(self.most) + 1e-9:
            raise CelstackError(
                f"{choices} choices on each of {layers} layers, for each background "
                f"({backgrounds}), are more than {self.most} combinations; use greedy, "
                "or raise most"
            )

    def choose(
        self,
        images: Float[Tensor, "B C H W"],
        candidates: list[Candidates],
        backdrops: Float[Tensor, "B M C H W"],
        occlusion: Float[Tensor, "B L L"],
        price: float | None,
    ) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
        """Enumerate the choices of all layers but the last, which is optimized in one step."""
        layers, last = len(candidates), len(candidates) - 1
        batch, count = candidates[last].alpha.shape[:2]
        charge = 0.0 if price is None else price * images[0].numel()
        choices = range(count) if price is None else range(EMPTY, count)
        lowest = images.new_full((batch,), torch.inf)
        sprite = torch.full((batch, layers), EMPTY, device=images.device)
        background = torch.zeros(batch, dtype=torch.int64, device=images.device)
        for which in range(backdrops.shape[1]):
            for others in product(choices, repeat=last):
                stack = _put_sprites(candidates, backdrops[:, which], occlusion, others)
                saved, best = stack.gains(last, images, candidates[last]).max(1)
                saved = saved - charge
                if price is not None:
                    best = torch.where(saved > 0, best, EMPTY)
                    saved = saved.clamp_min(0)
                filled = sum(choice != EMPTY for choice in others)
                total = stack.error(images) + charge * filled - saved
                better = total < lowest
                lowest = torch.where(better, total, lowest)
                chosen = torch.cat(
                    [sprite.new_tensor(others).expand(batch, -1), best[:, None]], 1
                )
                sprite = torch.where(better[:, None], chosen, sprite)
                background = background.masked_fill(better, which)
        return sprite, background


def _put_sprites(
    candidates: list[Candidates],
    backdrop: Float[Tensor, "B C H W"],
    occlusion: Float[Tensor, "B L L"],
    sprites: tuple[int, ...],
) -> LayerStack:
    stack = LayerStack(backdrop, occlusion, [mine.windows for mine in candidates])
    stack.begin_sweep()
    for layer, sprite in enumerate(sprites):
        if sprite != EMPTY:
            mine = candidates[layer]
            stack.put(layer, mine.paint[:, sprite], mine.alpha[:, sprite])
    return stack


@hookimpl
def celstack_selectors() -> dict[str, type[Exhaustive]]:
    """Let recipes say ``use = "exhaustive"``."""
    return {"exhaustive": Exhaustive}

"""Greedy: choose sprites layer by layer, each time the one that explains most."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import EMPTY, Decomposer, Prediction, Scene, Selector, hookimpl


class Greedy(Selector):
    """Algorithm 1 of the paper, for ``sweeps`` sweeps over the layers.

    With ``empty_cost``, the price lambda of Eq. 5, a layer may stay empty.
    """

    def __init__(
        self,
        sweeps: Annotated[int, Ge(1)] = 1,
        empty_cost: Annotated[float, Ge(0)] | None = None,
    ) -> None:
        self.sweeps = sweeps
        self.empty_cost = empty_cost

    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Choose with predicted parameters; the choice itself has no gradient."""
        prediction = decomposer.predict(images)
        occlusion = decomposer.compositor.occlusion(
            prediction.occlusion_logits, decomposer.training
        )
        with torch.no_grad():
            sprite = self._choose(images, decomposer, prediction, occlusion, noise, allow_empty)
        return _scene(sprite, prediction, occlusion, decomposer)

    def _choose(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        prediction: Prediction,
        occlusion: Float[Tensor, "B L L"],
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Int[Tensor, "B L"]:
        batch, layers, count, _ = prediction.sprite_params.shape
        kinds = torch.arange(count, device=images.device).repeat(batch * layers)
        shown = decomposer.show(
            kinds,
            prediction.sprite_params.flatten(0, 2),
            prediction.layer_params.flatten(0, 1).repeat_interleave(count, dim=0),
            noise,
        )
        candidates = shown.view(batch, layers, count, *shown.shape[1:])
        stack = torch.zeros_like(candidates[:, :, 0])
        sprite = torch.full((batch, layers), EMPTY, device=images.device)
        backdrop = decomposer.render_backdrop(_scene(sprite, prediction, occlusion, decomposer))
        everyone = torch.arange(batch, device=images.device)
        for _ in range(self.sweeps):
            for layer in range(layers):
                costs = []
                for candidate in candidates[:, layer].unbind(1):
                    stack[:, layer] = candidate
                    image, _ = decomposer.compositor.compose(stack, backdrop, occlusion)
                    costs.append((images - image).square().flatten(1).mean(1))
                if allow_empty:
                    stack[:, layer] = 0.0
                    image, _ = decomposer.compositor.compose(stack, backdrop, occlusion)
                    empty = (images - image).square().flatten(1).mean(1)
                    costs = [cost + (self.empty_cost or 0.0) for cost in costs] + [empty]
                best = torch.stack(costs, dim=1).argmin(1)
                filled = best < count
                best = best.clamp_max(count - 1)
                sprite[:, layer] = torch.where(filled, best, EMPTY)
                chosen = candidates[everyone, layer, best]
                stack[:, layer] = chosen * filled.to(chosen)[:, None, None, None]
        return sprite


def _scene(
    sprite: Int[Tensor, "B L"],
    prediction: Prediction,
    occlusion: Float[Tensor, "B L L"],
    decomposer: Decomposer,
) -> Scene:
    index = sprite.clamp_min(0)[:, :, None, None]
    index = index.expand(-1, -1, 1, prediction.sprite_params.shape[-1])
    background = None
    background_params = None
    if decomposer.backgrounds is not None:
        background = sprite.new_zeros(len(sprite))
        background_params = prediction.background_params[:, 0]
    return Scene(
        sprite=sprite,
        sprite_params=prediction.sprite_params.gather(2, index).squeeze(2),
        layer_params=prediction.layer_params,
        occlusion=occlusion,
        background=background,
        background_params=background_params,
    )


@hookimpl
def celstack_selectors() -> dict[str, type[Greedy]]:
    """Let recipes say ``use = "greedy"``."""
    return {"greedy": Greedy}

"""PlainSelector, and a model of plain parts around any selector."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.errors import CelstackError
from celstack.interfaces.predictor import Prediction
from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.model.objective import squared_error
from celstack.scene import EMPTY, Scene
from celstack.testing.parts import (
    PlainCompositor,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)


class PlainSelector(Selector):
    """Fill all layers with one sprite, or none: whichever explains the image best."""

    def __init__(self, empty_cost: float | None = 0.01) -> None:
        self.empty_cost = empty_cost

    def check(self, decomposer: Decomposer) -> None:
        """Refuse a model without a predictor."""
        if decomposer.predictor is None:
            raise CelstackError(f"{self.name} needs predictions; add a [predictor]")

    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Render every choice and take the cheapest."""
        prediction = decomposer.predict(images)
        kinds = [EMPTY] * allow_empty + list(range(decomposer.sprites.count))
        shape = prediction.layer_params.shape[:2]
        costs = []
        with torch.no_grad():
            for kind in kinds:
                everywhere = torch.full(shape, kind, device=images.device)
                scene = plain_scene(everywhere, prediction, decomposer)
                error = squared_error(images, decomposer.render(scene, noise).image)
                price = (self.empty_cost or 0.0) * shape[1] * (kind != EMPTY)
                costs.append(error + price * allow_empty)
        best = torch.tensor(kinds, device=images.device)[torch.stack(costs).argmin(0)]
        return plain_scene(best[:, None].repeat(1, shape[1]), prediction, decomposer)


def plain_scene(
    sprite: Int[Tensor, "B L"], prediction: Prediction, decomposer: Decomposer
) -> Scene:
    """Return the scene of these sprites, with predicted parameters and the first background."""
    batch, layers = sprite.shape
    image = torch.arange(batch, device=sprite.device)[:, None]
    layer = torch.arange(layers, device=sprite.device)
    with_background = decomposer.backgrounds is not None
    return Scene(
        sprite=sprite,
        sprite_params=prediction.sprite_params[image, layer, sprite.clamp_min(0)],
        layer_params=prediction.layer_params,
        occlusion=decomposer.compositor.occlusion(
            prediction.occlusion_logits, decomposer.training
        ),
        background=sprite.new_zeros(batch) if with_background else None,
        background_params=prediction.background_params[:, 0] if with_background else None,
    )


def plain_decomposer(
    selector: Selector, *, with_background: bool = False, layers: int = 2
) -> Decomposer:
    """Return a model of plain parts around a selector, with three sprites."""
    return Decomposer(
        sprites=PlainPrototype(),
        compositor=PlainCompositor(layers),
        selector=selector,
        sprite_transforms=[PlainWarp()],
        layer_transforms=[PlainTransform()],
        backgrounds=PlainPrototype(1) if with_background else None,
        background_transforms=[PlainTransform()] if with_background else [],
        predictor=PlainPredictor(),
    )

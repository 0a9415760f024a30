"""CandidateSelector: base class of selectors that choose among predicted candidates."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.errors import CelstackError
from celstack.interfaces.predictor import Prediction
from celstack.interfaces.selector import Selector
from celstack.model.candidates import Candidates, render_candidates
from celstack.scene import Scene

if TYPE_CHECKING:
    from celstack.model.decomposer import Decomposer


class CandidateSelector(Selector):
    """A selector that chooses among all sprites on all layers, as a predictor places them.

    A subclass implements ``choose`` alone. It gets ``Candidates`` for every layer: all sprites
    as they would appear there, already transformed and cropped to ``Windows``, so that nothing
    has to be warped or rendered to compare them. ``LayerStack`` compares them with all other
    layers in place; this is a complete selector that fills one layer after the other::

        import torch
        from celstack import EMPTY, CandidateSelector
        from celstack.model import LayerStack

        class OneByOne(CandidateSelector):
            def __init__(self, empty_cost: float | None = None) -> None:
                self.empty_cost = empty_cost

            def choose(self, images, candidates, backdrops, occlusion, price):
                everyone = torch.arange(len(images), device=images.device)
                stack = LayerStack(backdrops[:, 0], occlusion, [c.windows for c in candidates])
                stack.begin_sweep()
                chosen = []
                for layer, mine in enumerate(candidates):
                    gain, best = stack.gains(layer, images, mine).max(1)
                    filled = torch.ones_like(best, dtype=torch.bool)
                    if price is not None:  # a mean over the image, where gains are sums
                        filled = gain > price * images[0].numel()
                    alpha = mine.alpha[everyone, best] * filled[:, None, None]
                    paint = mine.paint[everyone, best] * filled[:, None, None, None]
                    stack.put(layer, paint, alpha)
                    chosen.append(torch.where(filled, best, EMPTY))
                return torch.stack(chosen, dim=1), torch.zeros_like(everyone)

    ``celstack.testing.check_selector(OneByOne(empty_cost=0.01))`` checks its laws.

    ``LayerStack`` assumes Eq. 2: with a compositor that overrides ``compose`` by another rule,
    sprites are chosen as if it were Eq. 2, while rendering and training use the compositor's
    rule.

    Laws:
        Those of Selector. ``choose`` is called without gradients.
    """

    def check(self, decomposer: Decomposer) -> None:
        """Refuse a model without a predictor."""
        if decomposer.predictor is None:
            raise CelstackError(f"{self.name} chooses among predictions; add a [predictor]")

    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Predict, call ``choose``, and gather the parameters of what was chosen."""
        prediction = decomposer.predict(images)
        logits = prediction.occlusion_logits
        occlusion = decomposer.compositor.occlusion(logits, decomposer.training)
        with torch.no_grad():
            sprite, background = self.choose(
                images,
                render_candidates(decomposer, prediction, noise),
                decomposer.render_backgrounds(prediction.background_params),
                occlusion,
                self.empty_cost if allow_empty else None,
            )
        chosen = background if decomposer.backgrounds is not None else None
        return _gather(sprite, chosen, prediction, occlusion)

    @abstractmethod
    def choose(
        self,
        images: Float[Tensor, "B C H W"],
        candidates: list[Candidates],
        backdrops: Float[Tensor, "B M C H W"],
        occlusion: Float[Tensor, "B L L"],
        price: float | None,
    ) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
        """Choose the sprite of every layer and the background of every image.

        Args:
            images: The images to explain.
            candidates: For each of L layers, all K sprites as they would appear on it.
            backdrops: The M backgrounds as they would appear; one black one if there are none.
            occlusion: Which layer hides which: d_jl = 1 where layer j hides layer l. While
                training, values may lie between 0 and 1.
            price: The cost of a layer that is not empty, as a mean over the values of the
                image: compare it with a sum of squared errors after multiplying it by
                C * H * W. None if no layer may be empty.

        Returns:
            A sprite index or EMPTY for each layer, and a background index for each image (0
            where there is one background, or none).
        """


def _gather(
    sprite: Int[Tensor, "B L"],
    background: Int[Tensor, " B"] | None,
    prediction: Prediction,
    occlusion: Float[Tensor, "B L L"],
) -> Scene:
    index = sprite.clamp_min(0)[:, :, None, None]
    index = index.expand(-1, -1, 1, prediction.sprite_params.shape[-1])
    background_params = None
    if background is not None:
        which = background[:, None, None]
        which = which.expand(-1, 1, prediction.background_params.shape[-1])
        background_params = prediction.background_params.gather(1, which).squeeze(1)
    return Scene(
        sprite=sprite,
        sprite_params=prediction.sprite_params.gather(2, index).squeeze(2),
        layer_params=prediction.layer_params,
        occlusion=occlusion,
        background=background,
        background_params=background_params,
    )

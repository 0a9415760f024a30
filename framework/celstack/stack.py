"""A stack of layers in which one layer at a time is exchanged (Eq. 2).

With the others fixed, a layer of mask m and colour c gives the image A + m (E c - D): A is
the composite of the others, E how much of the layer the others leave visible, D what the
layer would hide. So a candidate costs a few operations per pixel, not a composition.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Stack:
    """Layers on canvases of N pixels, exchanged in sweeps from the first to the last."""

    def __init__(
        self, backdrop: Float[Tensor, "B C N"], occlusion: Float[Tensor, "B L L"]
    ) -> None:
        batch, layers = occlusion.shape[:2]
        # The backdrop is one more layer: opaque, and hidden by all.
        self.colour = backdrop.new_zeros(batch, layers + 1, *backdrop.shape[1:])
        self.colour[:, -1] = backdrop
        self.alpha = backdrop.new_zeros(batch, layers + 1, backdrop.shape[2])
        self.alpha[:, -1] = 1.0
        self.hides = torch.cat([occlusion, occlusion.new_ones(batch, layers, 1)], dim=2)
        self.layers = layers
        self.filled = [False] * layers

    def begin_sweep(self) -> None:
        """Prepare to exchange the layers one after the other.

        What is left of layer i when j hides it is a product over j. The part of the product
        from layers before the current one grows as these are put, the part from layers
        behind it is known beforehand: so no layer costs more than L products.
        """
        self.left_by_earlier = torch.ones_like(self.alpha)
        self.left_by_later: list[Tensor | None] = [None] * self.layers
        product: Tensor | None = None
        for layer in reversed(range(self.layers)):
            self.left_by_later[layer] = product
            if self.filled[layer]:
                factor = self._left_by(layer)
                product = factor if product is None else product * factor

    def around(
        self, layer: int, window: Int[Tensor, "B n"]
    ) -> tuple[Float[Tensor, "B C n"], Float[Tensor, "B C n"], Float[Tensor, "B n"]]:
        """Return A, D and E of a layer at some pixels of each image."""
        present = [i for i in range(self.layers) if self.filled[i] and i != layer]
        present.append(self.layers)
        left = _at(self.left_by_earlier, [layer, *present], window)
        later = self.left_by_later[layer]
        if later is not None:
            left = left * _at(later, [layer, *present], window)
        weight = left[:, 1:] * _at(self.alpha, present, window)
        index = window[:, None, None].expand(-1, len(present), self.colour.shape[2], -1)
        seen = weight[:, :, None] * self.colour[:, present].gather(3, index)
        hidden = seen * self.hides[:, layer, present, None, None]
        return seen.sum(1), hidden.sum(1), left[:, 0]

    def put(
        self,
        layer: int,
        colour: Float[Tensor, "B C n"],
        alpha: Float[Tensor, "B n"],
        window: Int[Tensor, "B n"],
    ) -> None:
        """Exchange a layer, and go on to those behind it in the sweep."""
        self.filled[layer] = True
        index = window[:, None].expand(-1, colour.shape[1], -1)
        self.colour[:, layer].zero_().scatter_(2, index, colour)
        self.alpha[:, layer].zero_().scatter_(1, window, alpha)
        self.left_by_earlier *= self._left_by(layer)

    def set_backdrop(self, backdrop: Float[Tensor, "B C N"]) -> None:
        """Exchange the backdrop."""
        self.colour[:, -1] = backdrop

    def error(self, images: Float[Tensor, "B C N"]) -> Float[Tensor, " B"]:
        """Return the summed squared error of the stack as it is."""
        layers, shows = self.uncovered()
        return (images - layers - shows[:, None] * self.colour[:, -1]).square().sum((1, 2))

    def uncovered(self) -> tuple[Float[Tensor, "B C N"], Float[Tensor, "B N"]]:
        """Return the composite of the layers alone, and how much of the backdrop shows."""
        left = torch.ones_like(self.alpha)
        for layer in range(self.layers):
            if self.filled[layer]:
                left = left * self._left_by(layer)
        layers = (left * self.alpha)[:, :-1, None] * self.colour[:, :-1]
        return layers.sum(1), left[:, -1]

    def gains(
        self,
        layer: int,
        images: Float[Tensor, "B C N"],
        colour: Float[Tensor, "B K C n"],
        alpha: Float[Tensor, "B K n"],
        window: Int[Tensor, "B n"],
    ) -> Float[Tensor, "B K"]:
        """Return by how much each candidate for a layer would lower the summed squared error.

        Only pixels of the window can differ between the candidates and an empty layer.
        """
        without, hidden, left = self.around(layer, window)
        target = images.gather(2, window[:, None].expand(-1, images.shape[1], -1))
        error = (without - target)[:, None]
        # One buffer for A + m (E c - D) - x, because it is as large as all candidates.
        change = torch.addcmul(-hidden[:, None], left[:, None, None], colour)
        change *= alpha[:, :, None]
        change += error
        return error.square().sum((2, 3)) - change.square_().sum((2, 3))

    def _left_by(self, layer: int) -> Float[Tensor, "B M N"]:
        """Return what one layer leaves of every other; all of itself."""
        return 1 - self.hides[:, layer, :, None] * self.alpha[:, layer, None]


def _at(
    maps: Float[Tensor, "B M N"], layers: list[int], window: Int[Tensor, "B n"]
) -> Float[Tensor, "B m n"]:
    return maps[:, layers].gather(2, window[:, None].expand(-1, len(layers), -1))

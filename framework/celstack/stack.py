"""A stack of layers in which one layer at a time is exchanged (Eq. 2).

With the others fixed, a layer of mask m and colour c gives the image A + m (E c - D): A is
the composite of the others, E how much of the layer the others leave visible, D what the
layer would hide. So a candidate costs a few operations per pixel, not a composition.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.candidates import Candidates


class Stack:
    """Layers on canvases of N pixels, exchanged in sweeps from the first to the last."""

    def __init__(
        self, backdrop: Float[Tensor, "B C N"], occlusion: Float[Tensor, "B L L"]
    ) -> None:
        batch, layers = occlusion.shape[:2]
        # The backdrop is one more layer: opaque, and hidden by all.
        self.shown = backdrop.new_zeros(batch, layers + 1, *backdrop.shape[1:])
        self.shown[:, -1] = backdrop
        """Colour times alpha of every layer."""
        self.alpha = backdrop.new_zeros(batch, layers, backdrop.shape[2])
        self.hides = torch.cat([occlusion, occlusion.new_ones(batch, layers, 1)], dim=2)
        self.layers = layers
        self.filled = [False] * layers

    def begin_sweep(self) -> None:
        """Prepare to exchange the layers one after the other.

        What is left of layer i when others hide it is a product over them. The part of the
        product from layers before the current one grows as these are put, the part from
        those after it is known beforehand: so no layer costs more than L products.
        """
        self.left_by_earlier: Tensor | None = None
        self.left_by_later: list[Tensor | None] = [None] * self.layers
        for layer in reversed(range(1, self.layers)):
            later = self.left_by_later[layer]
            self.left_by_later[layer - 1] = self._left_by(layer, later)

    def around(
        self, layer: int, window: Int[Tensor, "B n"]
    ) -> tuple[Float[Tensor, "B C n"], Float[Tensor, "B C n"], Float[Tensor, "B n"]]:
        """Return A, D and E of a layer at some pixels of each image."""
        seen = _at(self.shown.flatten(1, 2), window).unflatten(1, self.shown.shape[1:3])
        left = seen.new_ones(1)
        for product in (self.left_by_earlier, self.left_by_later[layer]):
            if product is not None:
                found = _at(product, window)
                left = found if left.dim() == 1 else left.mul_(found)
        if left.dim() > 1:
            seen *= left[:, :, None]
        hides = self.hides[:, layer]
        others = torch.ones_like(hides)
        others[:, layer] = 0.0
        both = torch.stack([others, hides], dim=1) @ seen.flatten(2)
        without, hidden = both.unflatten(2, seen.shape[2:]).unbind(1)
        return without, hidden, left[:, layer] if left.dim() > 1 else left.expand(window.shape)

    def put(
        self,
        layer: int,
        colour: Float[Tensor, "B C n"],
        alpha: Float[Tensor, "B n"],
        window: Int[Tensor, "B n"],
    ) -> None:
        """Exchange a layer, and go on to those after it in the sweep."""
        self.filled[layer] = True
        index = window[:, None].expand(-1, colour.shape[1], -1)
        self.shown[:, layer].zero_().scatter_(2, index, colour * alpha[:, None])
        self.alpha[:, layer].zero_().scatter_(1, window, alpha)
        self.left_by_earlier = self._left_by(layer, self.left_by_earlier)

    def set_backdrop(self, backdrop: Float[Tensor, "B C N"]) -> None:
        """Exchange the backdrop."""
        self.shown[:, -1] = backdrop

    def uncovered(self) -> tuple[Float[Tensor, "B C N"], Float[Tensor, "B N"]]:
        """Return the composite of the layers alone, and how much of the backdrop shows."""
        left: Tensor | None = None
        for layer in range(self.layers):
            left = self._left_by(layer, left)
        if left is None:
            return torch.zeros_like(self.shown[:, -1]), torch.ones_like(self.alpha[:, 0])
        return (left[:, :-1, None] * self.shown[:, :-1]).sum(1), left[:, -1]

    def error(self, images: Float[Tensor, "B C N"]) -> Float[Tensor, " B"]:
        """Return the summed squared error of the stack as it is."""
        layers, shows = self.uncovered()
        return (images - layers - shows[:, None] * self.shown[:, -1]).square().sum((1, 2))

    def gains(
        self, layer: int, images: Float[Tensor, "B C N"], candidates: Candidates
    ) -> Float[Tensor, "B K"]:
        """Return by how much each candidate for a layer would lower the summed squared error.

        Only pixels of their window can differ between the candidates and an empty layer.
        """
        window = candidates.pixels
        without, hidden, left = self.around(layer, window)
        target = images.gather(2, window[:, None].expand(-1, images.shape[1], -1))
        error = (without - target)[:, None]
        # One buffer for A + m (E c - D) - x, because it is as large as all candidates.
        change = torch.addcmul(-hidden[:, None], left[:, None, None], candidates.colour)
        change *= candidates.alpha[:, :, None]
        change += error
        return error.square().sum((2, 3)) - change.square_().sum((2, 3))

    def _left_by(self, layer: int, before: Tensor | None) -> Float[Tensor, "B M N"] | None:
        """Multiply by what one layer leaves of every other, which is all of itself.

        None stands for ones: a layer that was never put hides nothing.
        """
        if not self.filled[layer]:
            return before
        leaves = 1 - self.hides[:, layer, :, None] * self.alpha[:, layer, None]
        return leaves if before is None else leaves.mul_(before)


def _at(maps: Float[Tensor, "B M N"], window: Int[Tensor, "B n"]) -> Float[Tensor, "B M n"]:
    if window.shape[1] == maps.shape[2]:
        return maps.clone()  # windows that are whole canvases hold their pixels in order
    return maps.gather(2, window[:, None].expand(-1, maps.shape[1], -1))

"""LayerStack: a composite in which one layer at a time is replaced (Eq. 2).

With the others fixed, a layer of mask m and color c gives the image A + m (E c - D): A is the
composite of the others, E how much of the layer the others leave visible, D what the layer
would hide. So comparing a candidate costs a few operations per pixel, not a composition.

Eq. 2 is assumed, whatever the model's compositor does in ``compose``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.geometry.windows import Windows
from celstack.model.candidates import Candidates


class LayerStack:
    """The layers of B images, replaced in sweeps from the first to the last.

    For example, fill every layer with its best candidate::

        stack = LayerStack(backdrop, occlusion, [mine.windows for mine in candidates])
        images_index = torch.arange(len(images))
        stack.begin_sweep()
        for layer, mine in enumerate(candidates):
            best = stack.gains(layer, images, mine).argmax(1)
            stack.put(layer, mine.paint[images_index, best], mine.alpha[images_index, best])

    Args:
        backdrop: What is behind all layers.
        occlusion: Which layer hides which.
        windows: For each layer, where all of its candidates are on the B canvases.
    """

    def __init__(
        self,
        backdrop: Float[Tensor, "B C H W"],
        occlusion: Float[Tensor, "B L L"],
        windows: Sequence[Windows],
    ) -> None:
        batch, self.layers, _ = occlusion.shape
        # The backdrop is one more layer, the first: opaque, and hidden by all.
        self.paint = backdrop.new_empty(batch, self.layers + 1, *backdrop.shape[1:])
        """Color times alpha."""
        self.paint[:, 0] = backdrop
        self.there = 1
        """How many rows of ``paint`` are initialized: the backdrop, and layers up to the last
        that was put."""
        self.alpha: list[Tensor | None] = [None] * self.layers
        """Masks in their windows; None for a layer that was not put yet."""
        self.hides = torch.cat([occlusion.new_ones(batch, self.layers, 1), occlusion], dim=2)
        others = (1 - torch.eye(self.layers, self.layers + 1).roll(1, 1)).to(self.hides)
        self.weights = torch.stack([others.expand_as(self.hides), self.hides], dim=2)
        """The weight of every layer in A, and in D, of every other layer."""
        self.windows = windows

    def begin_sweep(self) -> None:
        """Prepare to replace the layers one after the other.

        The visible share of a layer is a product over all other layers. Its factors from
        layers before the current one are accumulated as these are put; those from later
        layers are computed here. So no layer costs more than L products.
        """
        self.left_by_earlier = self._all_left()
        self.left_by_later: list[Tensor | None] = [None] * self.layers
        left = None
        for layer in reversed(range(1, self.layers)):
            if self.alpha[layer] is not None:
                left = self._all_left() if left is None else left
                self._hide(layer, left)
            if left is not None:
                windows = self.windows[layer - 1]
                mine = windows.cut(left)
                self.left_by_later[layer - 1] = mine.clone() if windows.are_whole else mine

    def affine_terms(
        self, layer: int
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B C h w"], Float[Tensor, "B h w"]]:
        """Return A, D and E of a layer, in its windows."""
        windows, there = self.windows[layer], self.there
        left = self.left_by_earlier[:, : max(there, layer + 2)]
        later = self.left_by_later[layer]
        left = (
            windows.cut(left)
            if later is None
            else windows.product(left, later[:, : left.shape[1]])
        )
        seen = windows.product(self.paint[:, :there], left[:, :there, None])
        sums = self.weights[:, layer, :, :there] @ seen.flatten(2)
        without, hidden = sums.unflatten(2, seen.shape[2:]).unbind(1)
        return without, hidden, left[:, layer + 1]

    def put(
        self, layer: int, paint: Float[Tensor, "B C h w"], alpha: Float[Tensor, "B h w"]
    ) -> None:
        """Replace a layer, and move on to the next one of the sweep."""
        if self.there < layer + 2:
            self.paint[:, self.there : layer + 2] = 0.0
            self.there = layer + 2
        self.windows[layer].paste(self.paint[:, layer + 1], paint)
        self.alpha[layer] = alpha
        self._hide(layer, self.left_by_earlier)

    def set_backdrop(self, backdrop: Float[Tensor, "B C H W"]) -> None:
        """Replace the backdrop."""
        self.paint[:, 0] = backdrop

    def uncovered(self) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B H W"]]:
        """Return the composite of the layers alone, and how much of the backdrop is visible."""
        left = self._all_left()
        for layer in range(self.layers):
            if self.alpha[layer] is not None:
                self._hide(layer, left)
        layers = torch.zeros_like(self.paint[:, 0])
        for layer in range(1, self.there):
            layers.addcmul_(left[:, layer, None], self.paint[:, layer])
        return layers, left[:, 0]

    def error(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, " B"]:
        """Return the summed squared error of each image's current composite."""
        layers, shows = self.uncovered()
        return (images - layers - shows[:, None] * self.paint[:, 0]).square().sum((1, 2, 3))

    def gains(
        self, layer: int, images: Float[Tensor, "B C H W"], candidates: Candidates
    ) -> Float[Tensor, "B K"]:
        """Return by how much each candidate lowers the error, compared to an empty layer.

        The error is the summed squared one; only pixels in the layer's window contribute.
        """
        without, hidden, left = self.affine_terms(layer)
        error = without - self.windows[layer].cut(images)
        # A + m (E c - D) - x in a single buffer, because it is as large as all candidates.
        change = torch.addcmul(error[:, None], left[:, None, None], candidates.paint)
        change.addcmul_(hidden[:, None], candidates.alpha[:, :, None], value=-1)
        return _squared(error[:, None]) - _squared(change)

    def _all_left(self) -> Float[Tensor, "B M H W"]:
        batch, count, _, height, width = self.paint.shape
        return self.paint.new_ones(batch, count, height, width)

    def _hide(self, layer: int, left: Float[Tensor, "B M H W"]) -> None:
        """Multiply the visible share of all layers by what one layer leaves of them."""
        alpha = self.alpha[layer]
        assert alpha is not None
        hides = self.hides[:, layer, :, None, None]
        leaves = torch.addcmul(alpha.new_ones(1), hides, alpha[:, None], value=-1)
        self.windows[layer].multiply(left, leaves)


def _squared(values: Float[Tensor, "B K C h w"]) -> Float[Tensor, "B K"]:
    """Sum squares over all but the first two axes; the norm needs a single pass."""
    norm: Tensor = torch.linalg.vector_norm(values.flatten(2), dim=2)
    return norm.square()

"""A stack of layers in which one layer at a time is exchanged (Eq. 2).

With the others fixed, a layer of mask m and colour c gives the image A + m (E c - D): A is
the composite of the others, E how much of the layer the others leave visible, D what the
layer would hide. So a candidate costs a few operations per pixel, not a composition.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.candidates import Candidates
from celstack.windows import Windows


class Stack:
    """Layers on canvases, exchanged in sweeps from the first to the last."""

    def __init__(
        self, backdrop: Float[Tensor, "B C H W"], occlusion: Float[Tensor, "B L L"]
    ) -> None:
        batch, self.layers, _ = occlusion.shape
        # The backdrop is one more layer, the first: opaque, and hidden by all.
        self.paint = [backdrop]
        """Colour times alpha of the backdrop, and of every layer up to the last one put."""
        self.alpha = backdrop.new_zeros(batch, self.layers, *backdrop.shape[2:])
        self.hides = torch.cat([occlusion.new_ones(batch, self.layers, 1), occlusion], dim=2)
        self.windows: list[Windows | None] = [None] * self.layers
        """Where each layer is; None for one that was never put."""

    def of(self, which: Sequence[int]) -> Stack:
        """Return the stacks of some of the images, in this order."""
        chosen = list(which)
        part = Stack(self.paint[0][chosen], self.hides[chosen, :, 1:])
        part.paint, part.alpha = [paint[chosen] for paint in self.paint], self.alpha[chosen]
        part.windows = [
            None if windows is None else windows.of(chosen) for windows in self.windows
        ]
        return part

    def begin_sweep(self) -> None:
        """Prepare to exchange the layers one after the other.

        What is left of layer i when others hide it is a product over them. The part of the
        product from layers before the current one grows as these are put, the part from
        those after it is known beforehand: so no layer costs more than L products.
        """
        self.left_by_earlier = self._all_left()
        self.left_by_later: list[Tensor | None] = [None] * self.layers
        for layer in reversed(range(1, self.layers)):
            later = self.left_by_later[layer]
            if self.windows[layer] is not None:
                later = self._all_left() if later is None else later.clone()
                self._hide(layer, later)
            self.left_by_later[layer - 1] = later

    def around(
        self, layer: int, windows: Windows
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B C h w"], Float[Tensor, "B h w"]]:
        """Return A, D and E of a layer, in its windows."""
        self._reach(layer)
        there = len(self.paint)
        left = windows.cut(self.left_by_earlier[:, :there])
        later = self.left_by_later[layer]
        if later is not None:
            left = left * windows.cut(later[:, :there])
        views = zip(*(windows.views(paint) for paint in self.paint), strict=True)
        seen = torch.stack([view for image in views for view in image])
        seen = seen.unflatten(0, (-1, there)).mul_(left[:, :, None])
        hides = self.hides[:, layer, :there]
        others = torch.ones_like(hides)
        others[:, layer + 1] = 0.0
        both = torch.stack([others, hides], dim=1) @ seen.flatten(2)
        without, hidden = both.unflatten(2, seen.shape[2:]).unbind(1)
        return without, hidden, left[:, layer + 1]

    def put(
        self,
        layer: int,
        paint: Float[Tensor, "B C h w"],
        alpha: Float[Tensor, "B h w"],
        windows: Windows,
    ) -> None:
        """Exchange a layer, and go on to those after it in the sweep."""
        self._reach(layer)
        if self.windows[layer] not in (None, windows):
            self.paint[layer + 1].zero_()
            self.alpha[:, layer] = 0.0
        self.windows[layer] = windows
        windows.paste(self.paint[layer + 1], paint)
        windows.paste(self.alpha[:, layer], alpha)
        self._hide(layer, self.left_by_earlier)

    def set_backdrop(self, backdrop: Float[Tensor, "B C H W"]) -> None:
        """Exchange the backdrop."""
        self.paint[0] = backdrop

    def uncovered(self) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B H W"]]:
        """Return the composite of the layers alone, and how much of the backdrop shows."""
        left = self._all_left()
        for layer in range(self.layers):
            if self.windows[layer] is not None:
                self._hide(layer, left)
        layers = torch.zeros_like(self.paint[0])
        for layer, paint in enumerate(self.paint[1:], start=1):
            layers.addcmul_(left[:, layer, None], paint)
        return layers, left[:, 0]

    def error(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, " B"]:
        """Return the summed squared error of the stack as it is."""
        layers, shows = self.uncovered()
        return (images - layers - shows[:, None] * self.paint[0]).square().sum((1, 2, 3))

    def gains(
        self, layer: int, images: Float[Tensor, "B C H W"], candidates: Candidates
    ) -> Float[Tensor, "B K"]:
        """Return by how much each candidate for a layer would lower the summed squared error.

        Only pixels of their window can differ between the candidates and an empty layer.
        """
        without, hidden, left = self.around(layer, candidates.windows)
        error = without - candidates.windows.cut(images)
        # One buffer for A + m (E c - D) - x, because it is as large as all candidates.
        change = torch.addcmul(error[:, None], left[:, None, None], candidates.paint)
        change.addcmul_(hidden[:, None], candidates.alpha[:, :, None], value=-1)
        return _squared(error[:, None]) - _squared(change)

    def _reach(self, layer: int) -> None:
        """Make room up to a layer; those above the highest ever put are not there yet."""
        while len(self.paint) <= layer + 1:
            self.paint.append(torch.zeros_like(self.paint[0]))

    def _all_left(self) -> Float[Tensor, "B M H W"]:
        batch, _, height, width = self.alpha.shape
        return self.alpha.new_ones(batch, self.layers + 1, height, width)

    def _hide(self, layer: int, left: Float[Tensor, "B M H W"]) -> None:
        """Take away what one layer hides of every other, which is nothing of itself."""
        windows = self.windows[layer]
        assert windows is not None
        alpha = windows.cut(self.alpha[:, layer])[:, None]
        hides = self.hides[:, layer, :, None, None]
        windows.multiply(left, torch.addcmul(alpha.new_ones(1), hides, alpha, value=-1))


def _squared(values: Float[Tensor, "B K C h w"]) -> Float[Tensor, "B K"]:
    """Sum the squares of each; the norm does it in one pass."""
    norm: Tensor = torch.linalg.vector_norm(values.flatten(2), dim=2)
    return norm.square()

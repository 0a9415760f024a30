"""Windows: rectangles on canvases that contain warped sprites.

Sprites are mostly much smaller than the canvas. Outside their windows they are transparent,
and nothing has to be computed there.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack.geometry.sampling import extent


@attrs.frozen
class Windows:
    """A rectangle on each of n canvases; all rectangles have the same size.

    Values that are zero outside of rectangles are stored, and computed, only inside of them.
    ``cut`` goes from whole canvases to windows, and ``paste``, ``add``, ``multiply`` and
    ``spread`` go back. Maps are tensors whose last two axes are the canvas and whose first is
    the number of the canvas; in between may be channels or any other axes::

        windows = Windows(canvas=(4, 6), height=2, width=3, tops=[0, 2], lefts=[3, 0])
        images = torch.arange(2 * 4 * 6.0).view(2, 1, 4, 6)
        inside = windows.cut(images)
        first = images[0, :, 0:2, 3:6]
        second = images[1, :, 2:4, 0:3]
        canvases = torch.zeros(2, 1, 4, 6)
        windows.paste(canvases, inside)

    Here ``inside`` is ``first`` and ``second``, stacked, and ``canvases`` are the images inside
    the windows and zero elsewhere, as is ``windows.spread(inside)``, which is differentiable.
    Windows lie completely on their canvases; which ones contain given boxes,
    ``enclosing_windows`` finds.
    """

    canvas: tuple[int, int]
    """Height and width of the canvases."""
    height: int
    width: int
    tops: list[int]
    """The first row of each window, in pixels from the top of its canvas."""
    lefts: list[int]
    """The first column of each window."""

    @classmethod
    def whole(cls, canvas: tuple[int, int], count: int) -> Windows:
        """Return windows that cover their canvases completely."""
        return cls(canvas, *canvas, [0] * count, [0] * count)

    def __len__(self) -> int:
        return len(self.tops)

    @property
    def are_whole(self) -> bool:
        """Whether the windows cover their canvases completely."""
        return (self.height, self.width) == self.canvas

    def of(self, which: Sequence[int]) -> Windows:
        """Return the windows of these canvases, in this order."""
        tops, lefts = [self.tops[n] for n in which], [self.lefts[n] for n in which]
        return attrs.evolve(self, tops=tops, lefts=lefts)

    def views(
        self, maps: Float[Tensor, "k *m H W"], which: Sequence[int] | None = None
    ) -> list[Float[Tensor, "*m h w"]]:
        """Return a view of each window, through which maps can be modified.

        Args:
            maps: Images of the canvases' size, with any number of channel axes.
            which: The map of each window; by default window n is on map n.
        """
        size = (*maps.shape[1:-2], self.height, self.width)
        first, *strides = maps.stride()
        down, across = strides[-2:]
        numbers = range(len(self)) if which is None else which
        starts = (
            maps.storage_offset() + number * first + top * down + left * across
            for number, top, left in zip(numbers, self.tops, self.lefts, strict=True)
        )
        # Slicing would take longer than what is done with the views.
        return [maps.as_strided(size, strides, start) for start in starts]

    def cut(
        self, maps: Float[Tensor, "k *m H W"], which: Int[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n *m h w"]:
        """Crop maps to the windows; a view if the windows are whole canvases."""
        if self.are_whole:
            return maps if which is None else maps[which]
        # Rows of a window are contiguous in memory: much faster than indexing pixels.
        return torch.stack(self.views(maps, None if which is None else which.tolist()))

    def product(
        self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *k h w"]
    ) -> Float[Tensor, "n *m h w"]:
        """Crop maps to the windows and multiply, without a copy in between."""
        if self.are_whole:
            return maps * inside
        result = maps.new_empty(*maps.shape[:-2], self.height, self.width)
        for view, factor, out in zip(self.views(maps), inside, result, strict=True):
            torch.mul(view, factor, out=out)
        return result

    def paste(self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]) -> None:
        """Write values into the windows of maps, in place."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.copy_(values)

    def add(self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]) -> None:
        """Add values to the windows of maps, in place."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.add_(values)

    def multiply(
        self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]
    ) -> None:
        """Multiply the windows of maps by values, in place."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.mul_(values)

    def spread(self, inside: Float[Tensor, "n D h w"]) -> Float[Tensor, "n D H W"]:
        """Place values on canvases that are zero outside the windows; differentiable."""
        if self.are_whole:
            return inside
        down = torch.tensor(self.tops)[:, None] + torch.arange(self.height)
        across = torch.tensor(self.lefts)[:, None] + torch.arange(self.width)
        pixels = (down[:, :, None] * self.canvas[1] + across[:, None]).flatten(1)
        empty = inside.new_zeros(*inside.shape[:2], self.canvas[0] * self.canvas[1])
        index = pixels[:, None].expand(-1, inside.shape[1], -1)
        return empty.scatter(2, index, inside.flatten(2)).unflatten(2, self.canvas)

    def coordinates(self, like: Tensor) -> tuple[Float[Tensor, "n w"], Float[Tensor, "n h"]]:
        """Return x of the windows' columns and y of their rows, as in ``pixel_centers``."""
        reach_x, reach_y = extent(*self.canvas)
        x = self._line(self.lefts, self.width, self.canvas[1], reach_x, like)
        y = self._line(self.tops, self.height, self.canvas[0], reach_y, like)
        return x, y

    def _line(
        self, starts: list[int], length: int, whole: int, reach: float, like: Tensor
    ) -> Float[Tensor, "n l"]:
        line = ((torch.arange(whole).to(like) + 0.5) * (2 / whole) - 1) * reach
        if length == whole:
            return line.expand(len(starts), -1)
        return torch.stack([line[start : start + length] for start in starts])


def enclosing_windows(
    low: Float[Tensor, "n 2"], high: Float[Tensor, "n 2"], canvas: tuple[int, int]
) -> Windows:
    """Return windows that contain boxes, all of the size of the largest one.

    Args:
        low: The least (x, y) of each box, in pixels.
        high: The greatest (x, y) of each box. NaN means that there is no bound.
        canvas: Height and width of the canvases; boxes may lie partly or wholly outside.
    """
    height, width = canvas
    size = low.new_tensor([width, height])
    first = torch.nan_to_num(low.ceil(), nan=0.0).clamp_min(0)
    last = torch.nan_to_num(high.floor(), nan=torch.inf, posinf=torch.inf)
    last = torch.minimum(last, size - 1)
    longest = (last - first + 1).amax(0).clamp_min(1)
    first = torch.minimum(first, size - longest)
    (lefts, tops), (across, down) = first.long().T.tolist(), longest.long().tolist()
    return Windows(canvas, down, across, tops, lefts)

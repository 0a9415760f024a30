"""Windows: the part of the canvas from which a warped sprite can be seen at all.

Sprites are mostly much smaller than the canvas. What is the same for all candidates, because
none of them reaches there, need not be computed.
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
    """A rectangle on each of n canvases, all rectangles of one size."""

    canvas: tuple[int, int]
    height: int
    width: int
    tops: list[int]
    lefts: list[int]

    @classmethod
    def whole(cls, canvas: tuple[int, int], count: int) -> Windows:
        """Return windows that are all of their canvases."""
        return cls(canvas, *canvas, [0] * count, [0] * count)

    def __len__(self) -> int:
        return len(self.tops)

    @property
    def are_whole(self) -> bool:
        """Tell whether nothing lies outside."""
        return (self.height, self.width) == self.canvas

    def of(self, which: Sequence[int]) -> Windows:
        """Return the windows of some of the canvases, in this order."""
        tops, lefts = [self.tops[n] for n in which], [self.lefts[n] for n in which]
        return attrs.evolve(self, tops=tops, lefts=lefts)

    def views(
        self, maps: Float[Tensor, "k *m H W"], which: Sequence[int] | None = None
    ) -> list[Float[Tensor, "*m h w"]]:
        """Return a view of each window; what is written into it is written into the maps.

        Window n is one of map n, or of map ``which[n]``.
        """
        size = (*maps.shape[1:-2], self.height, self.width)
        first, *strides = maps.stride()
        down, across = strides[-2:]
        numbers = range(len(self)) if which is None else which
        starts = (
            maps.storage_offset() + number * first + top * down + left * across
            for number, top, left in zip(numbers, self.tops, self.lefts, strict=True)
        )
        # As many slices would take longer than what is done with them.
        return [maps.as_strided(size, strides, start) for start in starts]

    def cut(
        self, maps: Float[Tensor, "k *m H W"], which: Int[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n *m h w"]:
        """Return what is in the windows; the maps themselves if nothing is outside."""
        if self.are_whole:
            return maps if which is None else maps[which]
        # Rows of a window lie together in memory: much faster than looking up pixels.
        return torch.stack(self.views(maps, None if which is None else which.tolist()))

    def product(
        self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *k h w"]
    ) -> Float[Tensor, "n *m h w"]:
        """Return what is in the windows, multiplied; faster than to cut first."""
        if self.are_whole:
            return maps * inside
        result = maps.new_empty(*maps.shape[:-2], self.height, self.width)
        for view, factor, out in zip(self.views(maps), inside, result, strict=True):
            torch.mul(view, factor, out=out)
        return result

    def paste(self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]) -> None:
        """Write into the windows."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.copy_(values)

    def add(self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]) -> None:
        """Add to what is in the windows."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.add_(values)

    def multiply(
        self, maps: Float[Tensor, "n *m H W"], inside: Float[Tensor, "n *m h w"]
    ) -> None:
        """Multiply what is in the windows."""
        for view, values in zip(self.views(maps), inside, strict=True):
            view.mul_(values)

    def spread(self, inside: Float[Tensor, "n D h w"]) -> Float[Tensor, "n D H W"]:
        """Lay what is in the windows out on canvases that are empty elsewhere."""
        if self.are_whole:
            return inside
        down = torch.tensor(self.tops)[:, None] + torch.arange(self.height)
        across = torch.tensor(self.lefts)[:, None] + torch.arange(self.width)
        pixels = (down[:, :, None] * self.canvas[1] + across[:, None]).flatten(1)
        empty = inside.new_zeros(*inside.shape[:2], self.canvas[0] * self.canvas[1])
        index = pixels[:, None].expand(-1, inside.shape[1], -1)
        return empty.scatter(2, index, inside.flatten(2)).unflatten(2, self.canvas)

    def coordinates(self, like: Tensor) -> tuple[Float[Tensor, "n w"], Float[Tensor, "n h"]]:
        """Return x of the windows' columns and y of their rows, as ``sampling`` counts them."""
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
    """Return windows that hold all pixels between these (x, y), counted in pixels.

    A box may reach outside its canvas, or lie there. Sides that are not numbers know no
    bounds: such a box holds everything.
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

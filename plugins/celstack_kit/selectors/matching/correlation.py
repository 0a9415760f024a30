"""Correlation: how well templates agree with maps, at every place."""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn.functional import conv2d, pad

FOURIER = 10.0
"""What one value of a transformed map costs, in multiplications of a direct correlation."""


class Correlation:
    """Templates of one size, to be held against maps of one size at all places.

    A template may reach over the edge of the map by half its size; beyond the edge all is
    zero. Place (0, 0) has the template's first pixel ``margin`` above and left of the map's.
    """

    def __init__(
        self,
        templates: Float[Tensor, "K G h w"],
        canvas: tuple[int, int],
        fourier: bool | None = None,
    ) -> None:
        self.templates = templates
        self.canvas = canvas
        height, width = templates.shape[-2:]
        self.margin = (height // 2, width // 2)
        self.places = places((height, width), canvas)
        # What reaches over one edge comes in at the other, where it only meets the margin.
        self.period = (
            fast_length(canvas[0] + self.margin[0]),
            fast_length(canvas[1] + self.margin[1]),
        )
        if fourier is None:
            whole = math.prod(self.period)
            direct = height * width * math.prod(self.places)
            fourier = FOURIER * whole * math.log2(whole) < direct
        self.transformed: Tensor | None = None
        if fourier:
            self.transformed = torch.fft.rfft2(templates, s=self.period).conj().resolve_conj()
            self.down, self.across = _back(self.period, self.places, templates)

    def __call__(self, maps: Float[Tensor, "B g H W"]) -> Float[Tensor, "B K P Q"]:
        """Return, summed over the maps of an image, the products with shifted templates.

        Each map meets the template of the same number; maps left out count as zero.
        """
        above, left = self.margin
        if self.transformed is None:
            used = self.templates[:, : maps.shape[1]]
            return conv2d(pad(maps, (left, left, above, above)), used)
        spectrum = torch.fft.rfft2(pad(maps, (left, 0, above, 0)), s=self.period)
        product = spectrum[:, None, 0] * self.transformed[:, 0]
        for further in range(1, maps.shape[1]):
            product.addcmul_(spectrum[:, None, further], self.transformed[:, further])
        # The same as irfft2, for the places alone: as matrices, that takes half the time.
        return torch.view_as_real(self.down @ product).flatten(3) @ self.across


def _back(
    period: tuple[int, int], places: tuple[int, int], like: Tensor
) -> tuple[Complex[Tensor, "P N"], Float[Tensor, "M Q"]]:
    """Return the matrices that undo a real Fourier transform, first along columns."""
    (tall, wide), (rows, columns) = period, places

    def turns(length: int, shifts: int, waves: int) -> Tensor:
        steps = torch.outer(torch.arange(shifts), torch.arange(waves)) % length
        return steps.to(like) * (2 * math.pi / length)

    turn = turns(tall, rows, tall)
    down = torch.complex(turn.cos(), turn.sin()) / tall
    # All waves but the first, and the one that is its own mirror image, stand for two.
    half = wide // 2 + 1
    weight = like.new_full((half,), 2.0 / wide)
    weight[0] = 1.0 / wide
    if wide % 2 == 0:
        weight[-1] = 1.0 / wide
    turn = turns(wide, columns, half)
    across = torch.stack([weight * turn.cos(), -weight * turn.sin()], dim=2)
    return down, across.flatten(1).T.contiguous()


def places(size: tuple[int, int], canvas: tuple[int, int]) -> tuple[int, int]:
    """Count the rows and columns of places for a template of this size."""
    down, across = (
        side - length + 2 * (length // 2) + 1 for side, length in zip(canvas, size, strict=True)
    )
    return down, across


def fast_length(length: int) -> int:
    """Return the next length whose only prime factors are 2, 3 and 5."""
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 1

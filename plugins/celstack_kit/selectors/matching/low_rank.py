"""Blends: many templates that look alike, held against maps as blends of a few."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack_kit.selectors.matching.correlation import Correlation

LOST = 3e-3
"""The share of all templates' squares that blends may lose."""


def find_shares(templates: Float[Tensor, "M n"]) -> Float[Tensor, "M r"]:
    """Return in what shares a few templates, blended, make all of them.

    A shape that is turned and resized little by little changes little by little, so few are
    enough. The columns are orthonormal: the few are the transpose times all.
    """
    squares, shares = torch.linalg.eigh(templates @ templates.T)
    lost = squares.clamp_min(0.0).cumsum(0)
    few = max(1, int((lost > LOST * lost[-1]).sum()))
    return shares[:, -few:].contiguous()


class Blends:
    """Templates of one size, to be held against maps at all places: approximately, but fast.

    Kinds of templates that are blended in the same shares lose the same: sums that cancel
    each other, as those over an even ground do, still cancel each other.
    """

    def __init__(
        self,
        templates: Float[Tensor, "M G h w"],
        canvas: tuple[int, int],
        shares: Float[Tensor, "M r"],
    ) -> None:
        self.shares = shares
        few = torch.einsum("mr,mghw->rghw", shares, templates)
        self.few = Correlation(few, canvas, fourier=False)
        self.margin = self.few.margin

    def __call__(self, maps: Float[Tensor, "B g H W"]) -> Float[Tensor, "B M P Q"]:
        """Return the products with shifted templates, as a correlation does."""
        few = self.few(maps)
        return (self.shares @ few.flatten(2)).unflatten(2, few.shape[2:])

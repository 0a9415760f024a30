"""Low-rank approximation of many similar templates, for faster cross-correlation."""

import torch
from jaxtyping import Float
from torch import Tensor

from celstack_kit.selectors.matching.correlation import Correlation

MAX_ENERGY_LOSS = 3e-3
"""Share of the templates' energy (sum of squares) that the approximation may lose."""


def low_rank_basis(templates: Float[Tensor, "M n"]) -> Float[Tensor, "M r"]:
    """Return an orthonormal basis U such that U U^T templates approximates the templates.

    These are the leading left singular vectors. Rotated and scaled versions of one shape vary
    smoothly, so a small rank r is enough.
    """
    energies, vectors = torch.linalg.eigh(templates @ templates.T)
    lost = energies.clamp_min(0.0).cumsum(0)
    rank = max(1, int((lost > MAX_ENERGY_LOSS * lost[-1]).sum()))
    return vectors[:, -rank:].contiguous()


class LowRankCorrelation:
    """Approximate cross-correlation with M templates through r combinations of them.

    Template channels that share a basis are projected alike: sums over channels that cancel
    each other exactly, as over a uniform background, still cancel.
    """

    def __init__(
        self,
        templates: Float[Tensor, "M G h w"],
        canvas: tuple[int, int],
        basis: Float[Tensor, "M r"],
    ) -> None:
        self.basis = basis
        combined = torch.einsum("mr,mghw->rghw", basis, templates)
        self.correlation = Correlation(combined, canvas, use_fft=False)
        self.margin = self.correlation.margin

    def __call__(self, maps: Float[Tensor, "B g H W"]) -> Float[Tensor, "B M P Q"]:
        """Return the approximate cross-correlation with each template, like Correlation."""
        combined = self.correlation(maps)
        return (self.basis @ combined.flatten(2)).unflatten(2, combined.shape[2:])

"""Compositor: how layers are combined into an image."""

from __future__ import annotations

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.part import Part


class Compositor(Part):
    """Combine layers with an occlusion matrix into an image (paper, Eq. 1 and 2).

    Most compositors implement ``occlusion`` alone. One that overrides ``compose`` is trained
    and evaluated by its own rule, at the cost of the fused kernel for Eq. 2.

    Laws:
        If all layers are transparent, the image is the backdrop.
        If one layer alone is opaque and all others are transparent, the image is that layer.
        The image is the sum of the layers' colors, weighted by what is visible of each, and
        of the backdrop, weighted by the product of 1 - alpha over all layers.
        ``occlusion`` has a zero diagonal, and d_jl + d_lj = 1 off it.
        Parameters of its own are created in ``prepare`` and learn at the rate
        ``learning_rate``. A compositor that has any derives from ``nn.Module``, too.
    """

    needed = ("layers",)

    layers: int
    """The number of layers L."""
    learning_rate: float = 1e-3
    """The learning rate of parameters of its own (``nn.Parameter``), if it has any."""

    @property
    def num_logits(self) -> int:
        """The number N of logits that a predictor has to predict for ``occlusion``."""
        return 0

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Set up for images of this shape (C, H, W); called before anything else."""

    @abstractmethod
    def occlusion(self, logits: Float[Tensor, "B N"], training: bool) -> Float[Tensor, "B L L"]:
        """Return the matrix d, d_jl = 1 where layer j hides layer l.

        Args:
            logits: What the predictor says of the order of layers; N may be 0.
            training: Whether the matrix may lie between 0 and 1; it is binary otherwise.
        """

    def compose(
        self,
        layers: Float[Tensor, "B L D H W"],
        backdrop: Float[Tensor, "B C H W"],
        occlusion: Float[Tensor, "B L L"],
    ) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B L H W"]]:
        """Composite layers over a backdrop (Eq. 2).

        Candidate selectors compare sprites by Eq. 2 (``celstack.model.LayerStack``), whatever
        this method does. A compositor with another rule is learned by that rule, but such a
        selector chooses sprites as if it were Eq. 2.

        Args:
            layers: Color channels, then alpha, of each layer.
            backdrop: What is behind all layers.
            occlusion: The matrix d of ``occlusion``.

        Returns:
            The image, and the visible part of each layer's alpha.
        """
        color, alpha = layers[:, :, :-1], layers[:, :, -1]
        left, uncovered = torch.ones_like(alpha), torch.ones_like(alpha[:, 0])
        for front, hides in zip(alpha.unbind(1), occlusion.unbind(1), strict=True):
            left = left * (1 - hides[:, :, None, None] * front[:, None])
            uncovered = uncovered * (1 - front)
        visible = left * alpha
        image = (visible[:, :, None] * color).sum(1) + uncovered[:, None] * backdrop
        return image, visible

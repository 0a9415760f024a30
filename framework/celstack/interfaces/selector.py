"""Selector: which sprite fills which layer."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.part import Part
from celstack.scene import Scene

if TYPE_CHECKING:
    from celstack.model import Decomposer


class Selector(Part):
    """Images to scenes: the minimum of Eq. 5, or an approximation of it.

    Laws:
        Choosing needs no gradient; what was chosen keeps the gradient of its parameters.
        The scene explains the images no worse than leaving all layers empty would, where
        the empty sprite may be chosen.
    """

    empty_cost: float | None
    """The price lambda of a layer that is not empty; None where no layer may be."""

    def check(self, decomposer: Decomposer) -> None:
        """Raise CelstackError if this selector cannot work with the other parts."""

    @abstractmethod
    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Return the scene that explains the images best.

        ``noise`` is what rendering will add to the masks; with ``allow_empty`` off, every
        layer must show a sprite and none is charged for it.
        """

"""Selector: which sprite fills which layer."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.part import Part
from celstack.scene import Scene

if TYPE_CHECKING:
    from celstack.model.decomposer import Decomposer


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
        """Raise CelstackError if this selector cannot work with the other parts.

        Asked twice: when they are put together, and when they know the shape of images. One
        that does not refuse a model without predictor may teach a predictor.
        """

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

    def twins(self, decomposer: Decomposer) -> list[tuple[int, int]]:  # noqa: ARG002
        """List pairs of sprites of which one is too many; none, if it cannot tell."""
        return []

    def missed(
        self,
        images: Float[Tensor, "B C H W"],  # noqa: ARG002
        scene: Scene,  # noqa: ARG002
        decomposer: Decomposer,  # noqa: ARG002
        unused: list[int],  # noqa: ARG002
    ) -> dict[int, Float[Tensor, "D h w"]]:
        """Draw what these scenes miss, for sprites that nobody uses, as far as it can.

        Others may be drawn anew as well, where that explains images better.
        """
        return {}

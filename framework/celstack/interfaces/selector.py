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
    """Find the scenes that explain images: the minimum of Eq. 5, or an approximation.

    Laws:
        The same images give the same choice, whatever was explained before: with the same
        model and noise, a second call returns the same scenes. A selector that needs random
        numbers draws them from a ``torch.Generator`` with a fixed seed, not from the global
        random state, which evaluating a model must not change.
        Choosing needs no gradient; the parameters of what was chosen keep theirs.
        Where the empty sprite is allowed, a scene costs no more than one whose layers are
        all empty.
    """

    renamed = {"twins": "find_duplicates", "missed": "propose_sprites"}

    needed = ("empty_cost",)

    empty_cost: float | None
    """The cost lambda of a layer that is not empty; None if every layer must be filled."""

    def check(self, decomposer: Decomposer) -> None:
        """Raise CelstackError if this selector cannot work with the other parts.

        Called twice: when the model is constructed, and when it knows the shape of images.
        A selector that accepts a model without a predictor can be the teacher of a predictor.
        """

    @abstractmethod
    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Return the scenes that explain the images best.

        Args:
            images: Images in [0, 1].
            decomposer: The model whose sprites, transforms and compositor are to be used.
            noise: What rendering will add to the masks of each sprite; None for no noise.
            allow_empty: Whether layers may be empty. If not, every layer must show a sprite
                and ``empty_cost`` is not charged.
        """

    def find_duplicates(self, decomposer: Decomposer) -> list[tuple[int, int]]:  # noqa: ARG002
        """List pairs of sprites that look alike, so that one of each can be given up.

        Returns:
            Pairs of sprite indices; none, unless a selector can detect duplicates.
        """
        return []

    def propose_sprites(
        self,
        images: Float[Tensor, "B C H W"],  # noqa: ARG002
        scene: Scene,  # noqa: ARG002
        decomposer: Decomposer,  # noqa: ARG002
        unused: list[int],  # noqa: ARG002
    ) -> dict[int, Float[Tensor, "D h w"]]:
        """Propose new images for sprites, drawn from what scenes fail to explain.

        Args:
            images: The images that were explained.
            scene: Their scenes.
            decomposer: The model.
            unused: The sprites that hardly any scene uses. Others may be proposed, too,
                where that explains the images better.

        Returns:
            An image, color and alpha, by sprite index; none, unless a selector can propose.
        """
        return {}

"""The objective (Eq. 5): how badly scenes explain images, and what their sprites cost."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from jaxtyping import Float
from torch import Tensor

from celstack.scene import Scene
from celstack.tensor_fields import map_tensors, tensor_fields


@attrs.frozen(eq=False)
class Loss:
    """The two terms of Eq. 5, averaged over images; and a third where there is a teacher.

    ``teaching`` is how far predictions are from what the teacher finds. The others then are
    those of the teacher's scenes, and nothing is learned from them.
    """

    reconstruction: Float[Tensor, ""]
    sprites: Float[Tensor, ""]
    teaching: Float[Tensor, ""] | None = None

    @property
    def total(self) -> Float[Tensor, ""]:
        """Sum the terms."""
        both = self.reconstruction + self.sprites
        return both if self.teaching is None else both + self.teaching

    def numbers(self) -> dict[str, float]:
        """Return the total and its terms, by name."""
        terms = {name: float(term) for name, term in self.terms().items()}
        return {**terms, "loss": float(self.total)}

    def detach(self) -> Loss:
        """Return the same numbers without their history."""
        return self.each(Tensor.detach)

    def each(self, change: Callable[[Float[Tensor, ""]], Float[Tensor, ""]]) -> Loss:
        """Return a loss whose terms are changed, one by one, in their order."""
        return map_tensors(change, self)

    def terms(self) -> dict[str, Float[Tensor, ""]]:
        """Return the terms that there are, by name."""
        return tensor_fields(self)


def squared_error(
    images: Float[Tensor, "B C H W"], others: Float[Tensor, "B C H W"]
) -> Float[Tensor, " B"]:
    """Return the squared error of each image, as a mean over its values.

    A mean, not a sum, so that a price of 1e-4 means the same on any canvas.
    """
    return (images - others).square().flatten(1).mean(1)


def objective(
    images: Float[Tensor, "B C H W"],
    scene: Scene,
    reconstructions: Float[Tensor, "B C H W"],
    masks: Float[Tensor, "n h w"],
    empty_cost: float,
    area_cost: float = 0.0,
) -> Loss:
    """Judge scenes, the images they make and the masks of all their layers, in windows.

    ``area_cost`` is the price of a layer that is opaque all over. Where a sprite looks like
    what is behind it, nothing else tells its mask whether to be there.
    """
    filled = scene.filled.sum(1).to(images.dtype)
    sprites = empty_cost * filled.mean()
    if area_cost:
        sprites = sprites + area_cost * masks.sum() / images[:, 0].numel()
    return Loss(squared_error(images, reconstructions).mean(), sprites)

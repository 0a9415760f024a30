"""The training objective (Eq. 5): reconstruction error plus the cost of sprites."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from jaxtyping import Float
from torch import Tensor

from celstack.scene import Scene
from celstack.tensor_fields import map_tensors, tensor_fields


@attrs.frozen(eq=False)
class Loss:
    """The two terms of Eq. 5, averaged over images, and the distillation loss if any.

    ``teaching`` is the distance of predictions from the teacher's scenes. The other terms
    are then those of the teacher's scenes and have no gradient for the predictor.
    """

    reconstruction: Float[Tensor, ""]
    sprites: Float[Tensor, ""]
    teaching: Float[Tensor, ""] | None = None

    @property
    def total(self) -> Float[Tensor, ""]:
        """The sum of all terms, which training minimizes."""
        both = self.reconstruction + self.sprites
        return both if self.teaching is None else both + self.teaching

    def numbers(self) -> dict[str, float]:
        """Return all terms and their total, called ``loss``, as Python numbers."""
        terms = {name: float(term) for name, term in self.terms().items()}
        return {**terms, "loss": float(self.total)}

    def detach(self) -> Loss:
        """Return the same loss, detached from the graph."""
        return self.each(Tensor.detach)

    def each(self, change: Callable[[Float[Tensor, ""]], Float[Tensor, ""]]) -> Loss:
        """Return a loss with a function applied to each term."""
        return map_tensors(change, self)

    def terms(self) -> dict[str, Float[Tensor, ""]]:
        """Return the terms that are not None, by name."""
        return tensor_fields(self)


def squared_error(
    images: Float[Tensor, "B C H W"], others: Float[Tensor, "B C H W"]
) -> Float[Tensor, " B"]:
    """Return the mean squared error of each image.

    A mean, not a sum, so that an ``empty_cost`` of 1e-4 means the same on any canvas.
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
    """Compute the loss of scenes (Eq. 5).

    Args:
        images: The images that were explained.
        scene: Their scenes.
        reconstructions: The images of the scenes.
        masks: The masks of all layers in their windows, as ``Decomposer.reconstruct`` returns.
        empty_cost: The cost lambda of a layer that is not empty.
        area_cost: The cost of a layer that is opaque everywhere. Where a sprite has the
            color of what is behind it, nothing else determines its mask.
    """
    filled = scene.filled.sum(1).to(images.dtype)
    sprites = empty_cost * filled.mean()
    if area_cost:
        sprites = sprites + area_cost * masks.sum() / images[:, 0].numel()
    return Loss(squared_error(images, reconstructions).mean(), sprites)

"""Images as the input of a model: converted in evaluation, checked in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from celstack.data.image_input import Images, to_batch
from celstack.errors import CelstackError

if TYPE_CHECKING:
    from celstack.model.decomposer import Decomposer


def model_input(
    decomposer: Decomposer, images: Images, convert: bool = True
) -> Float[Tensor, "B C H W"]:
    """Return images of the shape and on the device of a model.

    Args:
        decomposer: The model.
        images: Whatever ``to_batch`` takes.
        convert: False to take only what has the model's shape, and to read no values, which
            would synchronize with an accelerator.
    """
    expected = (decomposer.channels, *decomposer.canvas)
    if decomposer.channels and convert:
        return to_batch(images, expected, next(decomposer.parameters()))
    if isinstance(images, Tensor) and decomposer.channels and images.shape[1:] == expected:
        return images
    made = f"made for images of shape {expected}" if decomposer.channels else "not prepared"
    shape = tuple(getattr(images, "shape", ()))[1:]
    raise CelstackError(f"images of shape {shape}: the model is {made}")

"""Morphological: make a sprite's bright or opaque parts thicker or thinner."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from celstack import BrowserCode, Transform, hookimpl

REST = 5.0


class Morphological(Transform):
    """Soft dilation and erosion, of colors and alpha alike.

    A pixel becomes the mean of its window of ``size`` x ``size`` pixels x, with weights
    e^(alpha x) sigmoid(beta + rest); rest is 5 at the center and -5 around it. A large
    alpha dilates, a large negative one erodes. The parameters are alpha, then beta row by
    row: the first is for the neighbor above and to the left. Beyond the border, the
    border's pixels go on.
    """

    rest: Float[Tensor, " k"]

    def __init__(self, size: Literal[3, 5, 7] = 3) -> None:
        super().__init__()
        self.size = size
        self.num_params = 1 + size**2
        rest = torch.full((size**2,), -REST)
        rest[size**2 // 2] = REST
        self.register_buffer("rest", rest, persistent=False)

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Take the weighted means."""
        height, width = images.shape[-2:]
        padded = _extend(images, self.size // 2)
        windows = torch.stack(
            [
                padded[:, :, top : top + height, left : left + width]
                for top in range(self.size)
                for left in range(self.size)
            ]
        )
        rest = self.rest.to(params.dtype)
        alpha, beta = params[:, :1, None, None], params[:, 1:]
        kernel = logsigmoid(beta + rest).T[:, :, None, None, None]
        # As logarithms, so that no alpha is too large: softmax subtracts the greatest.
        shares = (alpha * windows + kernel).softmax(0)
        # At zero these shares still blur a little, and no other kernel would do: one that
        # is never negative and a delta at zero has its minimum there, hence no gradient.
        # So the blur of the rest pose is taken back near zero, and only there.
        near = (-params.square().sum(1)).exp()[:, None, None, None]
        blur = logsigmoid(rest).softmax(0)[:, None, None, None, None]
        return near * images + ((shares - near * blur) * windows).sum(0)

    def browser(self) -> BrowserCode:
        """Read morphological.js."""
        return BrowserCode.beside(__file__, size=self.size)


def _extend(images: Float[Tensor, "n D h w"], border: int) -> Float[Tensor, "n D H W"]:
    # Not torch's pad with "replicate": on CUDA its gradients are not the same every time.
    for axis in (2, 3):
        first, last = images.narrow(axis, 0, 1), images.narrow(axis, -1, 1)
        images = torch.cat([first] * border + [images] + [last] * border, dim=axis)
    return images


@hookimpl
def celstack_transforms() -> dict[str, type[Morphological]]:
    """Let recipes say ``use = "morphological"``."""
    return {"morphological": Morphological}

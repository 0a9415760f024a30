"""Morphological: dilate or erode the bright and opaque parts of a sprite."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from celstack import BrowserCode, Transform, hookimpl

REST = 5.0


class Morphological(Transform):
    """Soft dilation and erosion, of colors and alpha alike.

    The pixel becomes the weighted mean of its ``size`` x ``size`` neighborhood x, with weights
    e^(alpha x) sigmoid(beta + rest); rest is 5 at the center and -5 around it. The large
    alpha dilates, a large negative one erodes. The parameters are alpha, then beta row by
    row, beginning with the neighbor above and to the left. Borders are padded by replication.
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
        """Compute the weighted means."""
        height, width = images.shape[-2:]
        padded = _pad_replicate(images, self.size // 2)
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
        # In the log domain, since softmax is stable for any alpha.
        shares = (alpha * windows + kernel).softmax(0)
        # At zero parameters these weights still blur a little. The nonnegative kernel that is a
        # delta at zero would have a minimum there, and no gradient. So the blur of the rest
        # pose is subtracted near zero, and only there.
        near = (-params.square().sum(1)).exp()[:, None, None, None]
        blur = logsigmoid(rest).softmax(0)[:, None, None, None, None]
        return near * images + ((shares - near * blur) * windows).sum(0)

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, morphological.js."""
        return BrowserCode.beside(__file__, size=self.size)


def _pad_replicate(images: Float[Tensor, "n D h w"], border: int) -> Float[Tensor, "n D H W"]:
    # Not torch's pad with "replicate", whose gradient on CUDA is not deterministic.
    for axis in (2, 3):
        first, last = images.narrow(axis, 0, 1), images.narrow(axis, -1, 1)
        images = torch.cat([first] * border + [images] + [last] * border, dim=axis)
    return images


@hookimpl
def celstack_transforms() -> dict[str, type[Morphological]]:
    """Let recipes say ``use = "morphological"``."""
    return {"morphological": Morphological}

"""Pixels: images whose pixels are the parameters."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate

from celstack import Prototype, hookimpl
from celstack.geometry.softclip import softclip
from celstack_kit.prototypes.pixels.invariant_kmeans import find_lookalikes
from celstack_kit.prototypes.pixels.spectral import find_neighbors

MANY = {"lookalikes": 4000, "neighbours": 16_000}
"""From how many images groups are gathered."""


class Pixels(Prototype):
    """Learnable pixels, kept near [0, 1] by softclip (paper, Sec. 3.1, supplementary C.3).

    ``start`` says how colors begin: all at the constant ``appearance``, at the mean of some
    images, as single images, as the centers of k-means clusters of them, or as those of
    "lookalikes": images that are the same where the masks are, but for gain and offset of
    their colors, negatives included if these may be ``inverted``; or as those of
    "neighbours", which are held together by images in between, and may be moved. Masks begin
    as a Gaussian of ``mask_sigma`` pixels (or height, width), or opaque. Noise of ``jitter``
    on both keeps images from starting alike. Without a size they are as large as the canvas.
    """

    def __init__(
        self,
        count: Annotated[int, Ge(1)],
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] | None = None,
        start: Literal[
            "constant", "mean", "sample", "kmeans", "lookalikes", "neighbours"
        ] = "constant",
        appearance: float = 0.9,
        mask: Literal["gaussian", "opaque"] = "gaussian",
        mask_sigma: Annotated[float, Gt(0)]
        | tuple[Annotated[float, Gt(0)], Annotated[float, Gt(0)]] = 5.0,
        jitter: Annotated[float, Ge(0)] = 0.0,
        inverted: bool = False,
    ) -> None:
        super().__init__()
        self.count = count
        self.size = size
        self.start = start
        self.appearance = appearance
        self.mask_start = mask
        self.mask_sigma = mask_sigma if isinstance(mask_sigma, tuple) else (mask_sigma,) * 2
        self.jitter = jitter
        self.inverted = inverted
        if start in MANY:
            self.sample_size = MANY[start]

    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Make the pixels."""
        size = self.size or (sample.shape[2], sample.shape[3])
        color = self._start(sample, size, with_alpha and self.mask_start == "gaussian")
        self.colour = nn.Parameter(color + self.jitter * torch.randn_like(color))
        self.mask: nn.Parameter | None = None
        if with_alpha:
            mask = torch.ones(self.count, 1, *size)
            if self.mask_start == "gaussian":
                mask *= self._bell(size, size)
            self.mask = nn.Parameter(mask + self.jitter * torch.randn_like(mask))

    def _start(
        self, sample: Float[Tensor, "N C H W"], size: tuple[int, int], masked: bool
    ) -> Float[Tensor, "K C h w"]:
        if self.start == "constant":
            return torch.full((self.count, sample.shape[1], *size), self.appearance)
        if self.start == "mean":
            images = sample.mean(0, keepdim=True).expand(self.count, -1, -1, -1)
        elif self.start == "sample":
            images = sample[torch.randint(len(sample), (self.count,))]
            if self.count <= len(sample):
                images = sample[torch.randperm(len(sample))[: self.count]]
        elif self.start == "kmeans":
            images = _cluster(sample, self.count)
        else:
            canvas = (sample.shape[2], sample.shape[3])
            window = self._bell(canvas, size) if masked else torch.ones(canvas)
            find = find_lookalikes if self.start == "lookalikes" else find_neighbors
            images = find(sample, self.count, window, self.inverted)
        return interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)

    def _bell(
        self, canvas: tuple[int, int], size: tuple[int, int]
    ) -> Float[Tensor, "height width"]:
        """Draw the mask's Gaussian on a canvas that a sprite of this size covers."""
        tall, wide = (
            _bell(length, sigma * length / own)
            for length, sigma, own in zip(canvas, self.mask_sigma, size, strict=True)
        )
        return tall[:, None] * wide

    def images(self) -> Float[Tensor, "K D h w"]:
        """Return the pixels; only colors are clipped here."""
        alpha = torch.ones_like(self.colour[:, :1]) if self.mask is None else self.mask
        return torch.cat([softclip(self.colour), alpha], dim=1)

    def per_image(self) -> list[nn.Parameter]:
        """List colors and masks."""
        return [self.colour] if self.mask is None else [self.colour, self.mask]

    @torch.no_grad()
    def redraw(self, index: int, image: Float[Tensor, "D h w"]) -> bool:
        """Copy the pixels."""
        self.colour[index] = image[:-1]
        if self.mask is not None:
            self.mask[index] = image[-1:]
        return True


def _bell(length: int, sigma: float) -> Float[Tensor, " length"]:
    distance = (torch.arange(length) - (length - 1) / 2) / sigma
    return torch.exp(-0.5 * distance.square())


def _cluster(sample: Float[Tensor, "N C H W"], count: int) -> Float[Tensor, "K C H W"]:
    from scipy.cluster.vq import kmeans2

    seed = int(torch.randint(2**31, ()))
    values = sample.flatten(1).double().numpy()
    centers, _ = kmeans2(values, count, minit="++", seed=seed)
    return torch.from_numpy(centers).to(sample).view(count, *sample.shape[1:])


@hookimpl
def celstack_prototypes() -> dict[str, type[Pixels]]:
    """Let recipes say ``use = "pixels"``."""
    return {"pixels": Pixels}

"""Pixels: images whose pixels are parameters."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate

from celstack import CelstackError, Prototype, hookimpl
from celstack.geometry import softclip
from celstack_kit.prototypes.pixels.blobs import blob_sprites
from celstack_kit.prototypes.pixels.invariant_kmeans import invariant_kmeans
from celstack_kit.prototypes.pixels.spectral import spectral_clusters

SAMPLE_SIZES = {"median": 400, "blobs": 800, "invariant_kmeans": 4000, "spectral": 16_000}
"""Number of images that are compared or clustered."""
OLD_STARTS = {"lookalikes": "invariant_kmeans", "neighbours": "spectral"}
"""Values of ``start`` in recipes of 0.1.0, and what they are called now."""


class Pixels(Prototype):
    """Learnable pixels, kept near [0, 1] by softclip (paper, Sec. 3.1, supplementary C.3).

    ``start`` says how colors are initialized:

    - "constant": with the value ``appearance``;
    - "mean": with the mean of a sample of images;
    - "median": with their median, which objects in front of a background affect less;
    - "sample": with images of the sample;
    - "kmeans": with the centers of k-means clusters of the sample;
    - "invariant_kmeans": with the centers of clusters that ignore gain and offset of colors,
      and with ``inverted`` also their sign, weighted by the mask ("lookalikes" in 0.1.0);
    - "spectral": with the aligned means of spectral clusters, a normalized cut of the graph
      of nearest neighbors under small shifts and stretches ("neighbours" in 0.1.0);
    - "blobs": with the mean looks, masks included, of isolated objects in front of a
      background, grouped by looks. Objects of a group may differ in what ``varying`` lists:
      "angle", "size", "color".

    Each of the ``count`` sprites can have several ``views``, such as a cube that is turned:
    as many images, which count as one sprite.

    Masks are initialized as a Gaussian of ``mask_sigma`` pixels (or height, width), or opaque.
    Normal noise of standard deviation ``jitter`` is added to both, so that sprites differ.
    Without ``learn_colors`` only masks learn: sprites are silhouettes, and what distinguishes
    an object from its surroundings is its outline, not whether it is lighter or darker.
    Without a ``size``, images are as large as the canvas.
    """

    def __init__(
        self,
        count: Annotated[int, Ge(1)],
        size: tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]] | None = None,
        start: Literal[
            "constant",
            "mean",
            "median",
            "sample",
            "kmeans",
            "invariant_kmeans",
            "spectral",
            "blobs",
            "lookalikes",
            "neighbours",
        ] = "constant",
        appearance: float = 0.9,
        mask: Literal["gaussian", "opaque"] = "gaussian",
        mask_sigma: Annotated[float, Gt(0)]
        | tuple[Annotated[float, Gt(0)], Annotated[float, Gt(0)]] = 5.0,
        jitter: Annotated[float, Ge(0)] = 0.0,
        inverted: bool = False,
        learn_colors: bool = True,
        views: Annotated[int, Ge(1)] = 1,
        varying: list[Literal["angle", "size", "color"]] | None = None,
    ) -> None:
        super().__init__()
        if varying and start != "blobs":
            raise CelstackError('varying: only for start = "blobs"')
        self.count = count * views
        self.views = views
        self.varying = varying or []
        self.size = size
        self.start = OLD_STARTS.get(start, start)
        self.appearance = appearance
        self.mask_start = mask
        self.mask_sigma = mask_sigma if isinstance(mask_sigma, tuple) else (mask_sigma,) * 2
        self.jitter = jitter
        self.inverted = inverted
        self.learn_colors = learn_colors
        if self.start in SAMPLE_SIZES:
            self.sample_size = SAMPLE_SIZES[self.start]

    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Initialize the pixels from a sample of images."""
        size = self.size or (sample.shape[2], sample.shape[3])
        if self.start == "blobs" and not with_alpha:
            raise CelstackError('start = "blobs": only for sprites; take "median" here')
        if self.start == "blobs":
            self._prepare_blobs(sample, size)
            return
        color = self._initial_colors(sample, size, with_alpha and self.mask_start == "gaussian")
        if self.learn_colors:
            color = color + self.jitter * torch.randn_like(color)
        self.colour = nn.Parameter(color, requires_grad=self.learn_colors)
        self.mask: nn.Parameter | None = None
        if with_alpha:
            mask = torch.ones(self.count, 1, *size)
            if self.mask_start == "gaussian":
                mask *= self._gaussian(size, size)
            self.mask = nn.Parameter(mask + self.jitter * torch.randn_like(mask))

    def _prepare_blobs(self, sample: Float[Tensor, "N C H W"], size: tuple[int, int]) -> None:
        """Initialize colors and masks with blobs."""
        kinds = self.count // self.views
        sprites = blob_sprites(sample, kinds, self.views, size, self.varying)
        sprites = sprites + self.jitter * torch.randn_like(sprites)
        self.colour = nn.Parameter(sprites[:, :-1].clone(), requires_grad=self.learn_colors)
        self.mask = nn.Parameter(sprites[:, -1:].clone())

    def allocate(self, image_shape: tuple[int, int, int], with_alpha: bool) -> None:
        """Create black, transparent pixels; nothing is clustered."""
        channels, *canvas = image_shape
        size = self.size or canvas
        black = torch.zeros(self.count, channels, *size)
        self.colour = nn.Parameter(black, requires_grad=self.learn_colors)
        self.mask = nn.Parameter(torch.zeros(self.count, 1, *size)) if with_alpha else None

    def _initial_colors(
        self, sample: Float[Tensor, "N C H W"], size: tuple[int, int], masked: bool
    ) -> Float[Tensor, "K C h w"]:
        if self.start == "constant":
            return torch.full((self.count, sample.shape[1], *size), self.appearance)
        if self.start == "mean":
            images = sample.mean(0, keepdim=True).expand(self.count, -1, -1, -1)
        elif self.start == "median":
            images = sample.median(0, keepdim=True).values.expand(self.count, -1, -1, -1)
        elif self.start == "sample":
            images = sample[torch.randint(len(sample), (self.count,))]
            if self.count <= len(sample):
                images = sample[torch.randperm(len(sample))[: self.count]]
        elif self.start == "kmeans":
            images = _kmeans(sample, self.count)
        else:
            canvas = (sample.shape[2], sample.shape[3])
            window = self._gaussian(canvas, size) if masked else torch.ones(canvas)
            cluster = spectral_clusters if self.start == "spectral" else invariant_kmeans
            images = cluster(sample, self.count, window, self.inverted)
        return interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)

    def _gaussian(
        self, canvas: tuple[int, int], size: tuple[int, int]
    ) -> Float[Tensor, "height width"]:
        """Return the mask's Gaussian, resampled from a sprite of this size to the canvas."""
        tall, wide = (
            _gaussian_profile(length, sigma * length / own)
            for length, sigma, own in zip(canvas, self.mask_sigma, size, strict=True)
        )
        return tall[:, None] * wide

    def images(self) -> Float[Tensor, "K D h w"]:
        """Return colors, softly clipped, and alpha, which is clipped later."""
        alpha = torch.ones_like(self.colour[:, :1]) if self.mask is None else self.mask
        return torch.cat([softclip(self.colour), alpha], dim=1)

    def per_image(self) -> list[nn.Parameter]:
        """Return colors and masks."""
        return [self.colour] if self.mask is None else [self.colour, self.mask]

    @torch.no_grad()
    def redraw(self, index: int, image: Float[Tensor, "D h w"]) -> bool:
        """Replace the pixels of one image; the colors of silhouettes stay."""
        if not self.learn_colors:
            return False
        self.colour[index] = image[:-1]
        if self.mask is not None:
            self.mask[index] = image[-1:]
        return True


def _gaussian_profile(length: int, sigma: float) -> Float[Tensor, " length"]:
    distance = (torch.arange(length) - (length - 1) / 2) / sigma
    return torch.exp(-0.5 * distance.square())


def _kmeans(sample: Float[Tensor, "N C H W"], count: int) -> Float[Tensor, "K C H W"]:
    from scipy.cluster.vq import kmeans2

    seed = int(torch.randint(2**31, ()))
    values = sample.flatten(1).double().numpy()
    centers, _ = kmeans2(values, count, minit="++", seed=seed)
    return torch.from_numpy(centers).to(sample).view(count, *sample.shape[1:])


@hookimpl
def celstack_prototypes() -> dict[str, type[Pixels]]:
    """Let recipes say ``use = "pixels"``."""
    return {"pixels": Pixels}

"""Coins: coins of a few kinds on a wooden table."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from celstack import hookimpl
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.collage import Collage, Cutout, write_collages
from celstack_kit.dataset_support.count_range import parse_count_range
from celstack_kit.dataset_support.generated import GeneratedDataset

SUPERSAMPLING = 8
"""Coins are drawn at this multiple of their size and downsampled, for antialiasing."""
MIN_VISIBLE_SHARE = 0.3
"""Minimum visible share of each coin."""
MAX_OBJECTS = 6
"""With more coins, sampling hardly ever finds positions at which all are visible."""
TABLE = 1
"""Appended to the seed for the table; for images, 0 and the index of the split are."""
LIGHT, DARK = np.array([0.72, 0.5, 0.3]), np.array([0.4, 0.24, 0.13])
"""Colors of the wood."""


def _polygon(*radii: float, corners: int) -> list[tuple[float, float]]:
    """Return the vertices (x, y) of a polygon, the first on top, cycling through the radii."""
    turns = [2 * math.pi * corner / corners for corner in range(corners)]
    far = [radii[corner % len(radii)] for corner in range(corners)]
    return [
        (r * math.sin(turn), -r * math.cos(turn)) for r, turn in zip(far, turns, strict=True)
    ]


# Name: diameter in pixels, color, and an emblem in units of the coin's radius.
KINDS = {
    "star": (23, (0.95, 0.8, 0.35), _polygon(0.75, 0.3, corners=10)),
    "cross": (20, (0.85, 0.87, 0.9), _polygon(0.75, 0.22, corners=8)),
    "triangle": (17, (0.9, 0.55, 0.4), _polygon(0.72, corners=3)),
    "square": (14, (0.6, 0.75, 0.62), _polygon(0.65, corners=4)),
}
RIM, EMBLEM = 0.55, 0.35
"""Brightness of rim and emblem, relative to the coin's color."""


class Coins(GeneratedDataset):
    """One to four coins on a wooden table of 64 x 64 pixels; classes are the coins' kinds.

    ``kinds`` is the number of kinds, which differ in size, color and emblem and are equally
    frequent. ``objects`` is the number of coins per image, or minimum and maximum. They lie at
    integer positions within the image, later ones over earlier ones, each visible enough.
    ``variation`` is the maximum relative darkening of an image's light, and of each channel of
    a coin. ``seed`` is the generator's, for images and table; the run's seed does not change
    them. Images are kept in the user's cache.
    """

    max_objects: int

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 4000,
        test_count: Annotated[int, Ge(1)] = 320,
        kinds: Annotated[int, Interval(ge=1, le=4)] = 4,
        objects: int | tuple[int, int] = (1, 4),
        side: Annotated[int, Ge(48)] = 64,
        variation: Annotated[float, Interval(ge=0, le=0.5)] = 0.1,
        seed: Annotated[int, Ge(0)] = 0,
    ) -> None:
        super().__init__(count, test_count)
        bounds = parse_count_range("objects", objects, MAX_OBJECTS)
        self.min_objects, self.max_objects = bounds
        self.side, self.variation, self.seed = side, variation, seed
        self.class_names = tuple(KINDS)[:kinds]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three channels, square."""
        return (3, self.side, self.side)

    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on."""
        return {
            "kinds": len(self.class_names),
            "objects": [self.min_objects, self.max_objects],
            "side": self.side,
            "variation": self.variation,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: CacheWriter) -> None:
        """Compose the images of a split."""
        seed = [self.seed, 0, self.splits.index(split)]
        write_collages(writer, self.counts[split], seed, self._compose)

    def _compose(self, random: np.random.Generator) -> Collage:
        number = random.integers(self.min_objects, self.max_objects + 1)
        kinds = random.integers(len(self.class_names), size=number).tolist()
        light = 1 - random.uniform(0, self.variation)
        tints = 1 - random.uniform(0, self.variation, size=(number, 3))
        coins = [
            Cutout(light * tint * self.coins[kind].color, self.coins[kind].alpha)
            for kind, tint in zip(kinds, tints, strict=True)
        ]
        whole = np.array([np.count_nonzero(coin.alpha >= 0.5) for coin in coins])
        room = self.side + 1 - np.array([coin.alpha.shape for coin in coins])
        while True:
            # Only positions are sampled again, so that all kinds stay equally frequent.
            collage = Collage(light * self.table)
            corners = random.integers(room).tolist()
            for coin, kind, (row, column) in zip(coins, kinds, corners, strict=True):
                collage.paste(coin, (row, column), kind + 1)
            if (collage.visible_pixels() >= MIN_VISIBLE_SHARE * whole).all():
                return collage

    @cached_property
    def coins(self) -> list[Cutout]:
        """The cutout of each kind of coin."""
        return [_coin(*KINDS[name]) for name in self.class_names]

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """The wood texture: wavy growth rings and fibers."""
        random = np.random.default_rng([self.seed, TABLE])
        shape = (self.side, self.side)
        bend = _rescale(gaussian_filter(random.normal(size=shape), (6, 16), mode="wrap"))
        fibers = _rescale(gaussian_filter(random.normal(size=shape), (0.6, 6), mode="wrap"))
        rows = np.arange(self.side)[:, None] / 9 + 2 * bend
        years = 0.5 + 0.5 * np.sin(2 * math.pi * rows)
        share = (0.6 * years + 0.4 * fibers)[..., None]
        return LIGHT + share * (DARK - LIGHT)


def _rescale(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rescale noise to [0, 1]."""
    return (noise - noise.min()) / np.ptp(noise)


def _coin(
    diameter: int, color: tuple[float, float, float], emblem: list[tuple[float, float]]
) -> Cutout:
    """Draw a coin: a disc with a darker rim and an emblem."""
    across = SUPERSAMPLING * diameter
    radius = across / 2
    disc, shade = Image.new("L", (across, across)), Image.new("L", (across, across), 0)
    box = (0, 0, across - 1, across - 1)
    inner = (
        SUPERSAMPLING,
        SUPERSAMPLING,
        across - 1 - SUPERSAMPLING,
        across - 1 - SUPERSAMPLING,
    )
    ImageDraw.Draw(disc).ellipse(box, fill=255)
    draw = ImageDraw.Draw(shade)
    draw.rectangle(box, fill=round(255 * RIM))
    draw.ellipse(inner, fill=255)
    corners = [(radius + radius * x, radius + radius * y) for x, y in emblem]
    draw.polygon(corners, fill=round(255 * EMBLEM))
    alpha, light = (np.asarray(image.reduce(SUPERSAMPLING)) / 255 for image in (disc, shade))
    return Cutout(np.array(color) * light[..., None], alpha)


@hookimpl
def celstack_datasets() -> dict[str, type[Coins]]:
    """Let recipes say ``use = "coins"``."""
    return {"coins": Coins}

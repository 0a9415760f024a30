"""Coins: a few kinds of coins that lie on a wooden table."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from celstack import CelstackError, hookimpl
from celstack.text import shown
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.collage import Collage, Cutout, add_collages
from celstack_kit.dataset_support.generated import Generated

FINE = 8
"""Coins are drawn so many times larger, and made smaller: that smooths their edges."""
SEEN = 0.3
"""So much of each coin is not hidden, at least."""
MOST = 6
"""Of more coins, there are hardly ever places at which enough is seen of each."""
TABLE = 1
"""A seed's further number, for the table; images have 0 and their split's."""
LIGHT, DARK = np.array([0.72, 0.5, 0.3]), np.array([0.4, 0.24, 0.13])
"""The colors of wood."""


def _polygon(*radii: float, corners: int) -> list[tuple[float, float]]:
    """Return corners (x, y) around a coin's center, the first on top, radii taking turns."""
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
"""How bright a coin's rim and emblem are, as a share of its color."""


class Coins(Generated):
    """One to four coins on a wooden table of 64 x 64 pixels; classes are the coins' kinds.

    ``kinds`` is how many kinds there are, of different sizes, colors and emblems, all equally
    frequent. ``objects`` is how many coins an image shows, or the least and the most. They lie
    at whole pixels, within the image, later ones over earlier ones; enough is seen of each.
    ``variation`` says how much darker the light of an image may be, which falls on table and
    coins alike, and by how much each channel of a coin may differ. ``seed`` chooses the table,
    which is the same in all images, and the collection; the run's own seed does not
    change it. Images are kept in the user's cache.
    """

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
        self.least, self.most = (objects, objects) if isinstance(objects, int) else objects
        if not 1 <= self.least <= self.most <= MOST:
            text = f"must be 1 to {MOST}, or the least and the most of these"
            raise CelstackError(f"objects: {text}, not {shown(objects)}")
        self.side, self.variation, self.seed = side, variation, seed
        self.class_names = tuple(KINDS)[:kinds]
        self.most_objects = self.most

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colors, square."""
        return (3, self.side, self.side)

    def facts(self) -> Mapping[str, Any]:
        """Return all options that images depend on."""
        return {
            "kinds": len(self.class_names),
            "objects": [self.least, self.most],
            "side": self.side,
            "variation": self.variation,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: Writer) -> None:
        """Lay out image after image."""
        seed = [self.seed, 0, self.splits.index(split)]
        add_collages(writer, self.counts[split], seed, self._lay)

    def _lay(self, random: np.random.Generator) -> Collage:
        number = random.integers(self.least, self.most + 1)
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
            # Only places are drawn again, so that every kind stays equally frequent.
            collage = Collage(light * self.table)
            corners = random.integers(room).tolist()
            for coin, kind, (row, column) in zip(coins, kinds, corners, strict=True):
                collage.paste(coin, (row, column), kind + 1)
            if (collage.seen() >= SEEN * whole).all():
                return collage

    @cached_property
    def coins(self) -> list[Cutout]:
        """The coin of each kind."""
        return [_coin(*KINDS[name]) for name in self.class_names]

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """The wood: rings of years, cut lengthwise, that bend a little, and fibres."""
        random = np.random.default_rng([self.seed, TABLE])
        shape = (self.side, self.side)
        bend = _even(gaussian_filter(random.normal(size=shape), (6, 16), mode="wrap"))
        fibres = _even(gaussian_filter(random.normal(size=shape), (0.6, 6), mode="wrap"))
        rows = np.arange(self.side)[:, None] / 9 + 2 * bend
        years = 0.5 + 0.5 * np.sin(2 * math.pi * rows)
        share = (0.6 * years + 0.4 * fibres)[..., None]
        return LIGHT + share * (DARK - LIGHT)


def _even(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stretch noise to [0, 1]."""
    return (noise - noise.min()) / np.ptp(noise)


def _coin(
    diameter: int, color: tuple[float, float, float], emblem: list[tuple[float, float]]
) -> Cutout:
    """Draw a coin: a disc with a darker rim and a dark emblem."""
    across = FINE * diameter
    radius = across / 2
    disc, shade = Image.new("L", (across, across)), Image.new("L", (across, across), 0)
    box = (0, 0, across - 1, across - 1)
    inner = (FINE, FINE, across - 1 - FINE, across - 1 - FINE)
    ImageDraw.Draw(disc).ellipse(box, fill=255)
    draw = ImageDraw.Draw(shade)
    draw.rectangle(box, fill=round(255 * RIM))
    draw.ellipse(inner, fill=255)
    corners = [(radius + radius * x, radius + radius * y) for x, y in emblem]
    draw.polygon(corners, fill=round(255 * EMBLEM))
    alpha, light = (np.asarray(image.reduce(FINE)) / 255 for image in (disc, shade))
    return Cutout(np.array(color) * light[..., None], alpha)


@hookimpl
def celstack_datasets() -> dict[str, type[Coins]]:
    """Let recipes say ``use = "coins"``."""
    return {"coins": Coins}

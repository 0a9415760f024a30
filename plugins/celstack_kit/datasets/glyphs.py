"""Glyphs: lines of printed text, dark on light."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from celstack import CelstackError, hookimpl
from celstack.text import format_value
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.collage import Collage, Cutout, write_collages
from celstack_kit.dataset_support.generated import GeneratedDataset

PAPER = np.array([0.97, 0.95, 0.9])
INK = np.array([0.05, 0.05, 0.1])
MAX_GAP_PIXELS = 2
"""Maximum distance between two letters of a word."""
WORD_END_PROBABILITY, SPACE_PIXELS = 0.25, 5
"""Probability that a word ends after a letter, and the additional distance then."""
UNKNOWN = "\uffff"
"""The character that no font has, to recognize the glyph drawn for missing characters."""


class Glyphs(GeneratedDataset):
    """Lines of random words, 24 x 96 pixels; classes are the letters.

    ``letters`` occur equally often, in Pillow's default font of ``size`` pixels. ``per_line``
    is the number of letters on a line, or minimum and maximum. All occurrences of a letter are
    equal to the pixel; line start and spacing vary, and letters may touch but do not overlap.
    ``variation`` is the maximum darkening of the paper of a line, and lightening of the ink of
    a letter. ``seed`` is the generator's; the run's seed does not change the images. Images
    are kept in the user's cache.
    """

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 4000,
        test_count: Annotated[int, Ge(1)] = 320,
        letters: str = "aeinorst",
        per_line: int | tuple[int, int] = (4, 6),
        size: Annotated[int, Ge(6)] = 20,
        height: Annotated[int, Ge(8)] = 24,
        width: Annotated[int, Ge(8)] = 96,
        variation: Annotated[float, Interval(ge=0, le=0.4)] = 0.1,
        seed: Annotated[int, Ge(0)] = 0,
    ) -> None:
        super().__init__(count, test_count)
        self.min_letters, self.max_letters = (
            (per_line, per_line) if isinstance(per_line, int) else per_line
        )
        if not 1 <= self.min_letters <= self.max_letters:
            text = "must be a number, or the least and the most, from 1 on"
            raise CelstackError(f"per_line: {text}, not {format_value(per_line)}")
        self.letters = "".join(dict.fromkeys(letters))
        self.size, self.height, self.width = size, height, width
        self.variation, self.seed = variation, seed
        self.masks = _masks(self.letters, size)
        tall, wide = self.masks[0].shape[0], max(mask.shape[1] for mask in self.masks)
        if tall > height:
            raise CelstackError(f"size: letters of {tall} pixels are too tall for {height}")
        if self.max_letters * (wide + MAX_GAP_PIXELS) > width:
            text = f"{self.max_letters} letters of {wide} pixels are too many for {width}"
            raise CelstackError(f"per_line: {text}")
        self.class_names = tuple(self.letters)
        self.max_objects = self.max_letters

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three channels, height, width."""
        return (3, self.height, self.width)

    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on."""
        return {
            "letters": self.letters,
            "per_line": [self.min_letters, self.max_letters],
            "size": self.size,
            "shape": [self.height, self.width],
            "variation": self.variation,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: CacheWriter) -> None:
        """Compose the lines of a split."""
        seed = [self.seed, self.splits.index(split)]
        write_collages(writer, self.counts[split], seed, self._line)

    def _line(self, random: np.random.Generator) -> Collage:
        number = random.integers(self.min_letters, self.max_letters + 1)
        kinds = random.integers(len(self.masks), size=number)
        lighter = random.uniform(0, self.variation, size=number)
        paper = PAPER * (1 - random.uniform(0, self.variation))
        row = int(random.integers(self.height - len(self.masks[0]) + 1))
        line = Collage(np.broadcast_to(paper, (self.height, self.width, 3)))
        columns = self._columns(random, kinds).tolist()
        for kind, column, light in zip(kinds.tolist(), columns, lighter, strict=True):
            mask = self.masks[kind]
            ink = np.broadcast_to(INK + light, (*mask.shape, 3))
            line.paste(Cutout(ink, mask), (row, column), kind + 1)
        return line

    def _columns(
        self, random: np.random.Generator, kinds: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Sample the first column of each letter."""
        widths = np.array([self.masks[kind].shape[1] for kind in kinds])
        gaps = random.integers(MAX_GAP_PIXELS + 1, size=len(kinds))
        spaces = SPACE_PIXELS * (random.random(len(kinds)) < WORD_END_PROBABILITY)
        gaps[-1] = spaces[-1] = 0
        room = self.width - (widths + gaps).sum()
        # Words end only as long as the rest of the line fits.
        spaces[spaces.cumsum() > room] = 0
        start = random.integers(room - spaces.sum() + 1)
        ends = (widths + gaps + spaces).cumsum()
        return start + np.concatenate([[0], ends[:-1]])


def _masks(letters: str, size: int) -> list[NDArray[np.float64]]:
    """Return the alpha of each letter, cropped to its own width and the height of all."""
    font = ImageFont.load_default(size)
    pages = []
    for letter in [*letters, UNKNOWN]:
        page = Image.new("L", (4 * size, 3 * size))
        ImageDraw.Draw(page).text((size, 2 * size), letter, fill=255, font=font, anchor="ls")
        pages.append(np.asarray(page) / 255)
    unknown = pages.pop()
    absent = [
        x for x, p in zip(letters, pages, strict=True) if (p == unknown).all() or not p.any()
    ]
    if absent or not letters:
        named = f"{format_value(absent[0])} is not one" if absent else "there are none"
        raise CelstackError(f"letters: must be some that the font has; {named}")
    rows = np.flatnonzero(np.any(pages, axis=(0, 2)))
    tall = slice(rows[0], rows[-1] + 1)
    inked = [np.flatnonzero(page.any(0)) for page in pages]
    return [page[tall, ink[0] : ink[-1] + 1] for page, ink in zip(pages, inked, strict=True)]


@hookimpl
def celstack_datasets() -> dict[str, type[Glyphs]]:
    """Let recipes say ``use = "glyphs"``."""
    return {"glyphs": Glyphs}

"""Glyphs: lines of printed text, dark on light paper."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from celstack import CelstackError, hookimpl
from celstack.text import shown
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.collage import Collage, Cutout, add_collages
from celstack_kit.dataset_support.generated import Generated

PAPER = np.array([0.97, 0.95, 0.9])
INK = np.array([0.05, 0.05, 0.1])
GAP = 2
"""At most so many pixels are between two letters of a word."""
BREAK, SPACE = 0.25, 5
"""How often a word ends after a letter, and how many more pixels are left then."""
UNKNOWN = "\uffff"
"""No font has this letter: what is drawn for it stands for all that are missing."""


class Glyphs(Generated):
    """A page of random words, cut into lines of 24 x 96 pixels; classes are the letters.

    ``letters`` are those that occur, equally often, in Pillow's own font of ``size`` pixels.
    ``per_line`` is how many are on a line, or the least and the most. A letter is drawn once
    and recurs to the pixel; lines begin anywhere, spacing varies, and letters may touch but
    never overlap. ``variation`` says how much darker the paper of a line may be, and how much
    lighter the ink of a letter. ``seed`` chooses the collection; the run's own seed does not
    change it. Images are kept in the user's cache.
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
        self.least, self.most = (per_line, per_line) if isinstance(per_line, int) else per_line
        if not 1 <= self.least <= self.most:
            text = "must be a number, or the least and the most, from 1 on"
            raise CelstackError(f"per_line: {text}, not {shown(per_line)}")
        self.letters = "".join(dict.fromkeys(letters))
        self.size, self.height, self.width = size, height, width
        self.variation, self.seed = variation, seed
        self.masks = _masks(self.letters, size)
        tall, wide = self.masks[0].shape[0], max(mask.shape[1] for mask in self.masks)
        if tall > height:
            raise CelstackError(f"size: letters of {tall} pixels are too tall for {height}")
        if self.most * (wide + GAP) > width:
            text = f"{self.most} letters of {wide} pixels are too many for {width}"
            raise CelstackError(f"per_line: {text}")
        self.class_names = tuple(self.letters)
        self.most_objects = self.most

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colors, wider than high."""
        return (3, self.height, self.width)

    def facts(self) -> Mapping[str, Any]:
        """Return all options that images depend on."""
        return {
            "letters": self.letters,
            "per_line": [self.least, self.most],
            "size": self.size,
            "shape": [self.height, self.width],
            "variation": self.variation,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: Writer) -> None:
        """Set line after line."""
        seed = [self.seed, self.splits.index(split)]
        add_collages(writer, self.counts[split], seed, self._line)

    def _line(self, random: np.random.Generator) -> Collage:
        number = random.integers(self.least, self.most + 1)
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
        """Choose where letters begin, one after the other."""
        widths = np.array([self.masks[kind].shape[1] for kind in kinds])
        gaps = random.integers(GAP + 1, size=len(kinds))
        spaces = SPACE * (random.random(len(kinds)) < BREAK)
        gaps[-1] = spaces[-1] = 0
        room = self.width - (widths + gaps).sum()
        # Words end only as long as the rest still has room.
        spaces[spaces.cumsum() > room] = 0
        start = random.integers(room - spaces.sum() + 1)
        ends = (widths + gaps + spaces).cumsum()
        return start + np.concatenate([[0], ends[:-1]])


def _masks(letters: str, size: int) -> list[NDArray[np.float64]]:
    """Draw each letter, as wide as its ink, and as high as the ink of all together."""
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
        named = f"{shown(absent[0])} is not one" if absent else "there are none"
        raise CelstackError(f"letters: must be some that the font has; {named}")
    rows = np.flatnonzero(np.any(pages, axis=(0, 2)))
    tall = slice(rows[0], rows[-1] + 1)
    inked = [np.flatnonzero(page.any(0)) for page in pages]
    return [page[tall, ink[0] : ink[-1] + 1] for page, ink in zip(pages, inked, strict=True)]


@hookimpl
def celstack_datasets() -> dict[str, type[Glyphs]]:
    """Let recipes say ``use = "glyphs"``."""
    return {"glyphs": Glyphs}

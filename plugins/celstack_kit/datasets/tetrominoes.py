"""Tetrominoes: pieces of four blocks on a black canvas, without overlap."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from celstack import CelstackError, Source, hookimpl
from celstack.text import shown
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, Scenes
from celstack_kit.dataset_support.object_records import Record

PIECES = {
    "I": ["1111"],
    "O": ["11", "11"],
    "T": ["111", "010"],
    "S": ["011", "110"],
    "Z": ["110", "011"],
    "J": ["100", "111"],
    "L": ["001", "111"],
}
COLORS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], np.uint8)
BLOCK = np.array(
    [
        [191, 255, 255, 255, 223],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 64, 64, 64, 127],
    ],
    np.uint8,
)
ALL = "".join(PIECES)
CHUNK = 4096


class Tetrominoes(Scenes):
    """Three pieces in six colors on a canvas of 35 x 35, without overlap.

    They are generated, to the pixel like those of the published set. ``pieces`` says which of
    the seven tetrominoes occur, each in all its rotations: 19 shapes for all seven.
    ``ground`` is the brightness behind them, black as published; on another, the masks of
    pieces matter everywhere. With ``overlap``, pieces fall anywhere, and later ones hide
    earlier ones, up to all of them. ``seed`` chooses the collection; the run's own seed does
    not change it, so that runs can be compared. Images are kept in the user's cache.

    With ``source = "records"`` they are read from the published ``tetrominoes_train.tfrecords``
    (packed with gzip or not), with ``source = "folder"`` from the folders ``images``, ``masks``
    and ``sem_masks`` of ``<number>.png``; both are looked for in ``root``, else in the
    folder that CELSTACK_DATA names, then in the user's cache. The first ``count`` images
    are for learning and the ``test_count`` after them for judging; the paper judged on the
    first 320 that it learned from. Classes are told from the pieces' masks.
    """

    files = ("tetrominoes_train.tfrecords", "tetrominoes")
    sources = (
        Source(
            f"{BUCKET}/tetrominoes/tetrominoes_train.tfrecords",
            licence="see the homepage",
            homepage=HOMEPAGE,
        ),
    )
    record_size = (35, 35)

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 60_000,
        test_count: Annotated[int, Ge(1)] = 320,
        pieces: str = "IOTSZJL",
        per_image: Annotated[int, Ge(1)] = 3,
        side: Annotated[int, Ge(20)] = 35,
        ground: Annotated[float, Interval(ge=0, le=1)] = 0.0,
        overlap: bool = False,
        seed: Annotated[int, Ge(0)] = 0,
        source: Literal["generated", "records", "folder"] = "generated",
        root: Path | None = None,
        skip_broken: bool = False,
    ) -> None:
        super().__init__(source, root, count, test_count, skip_broken)
        unknown = sorted(set(pieces) - set(PIECES))
        if unknown or not pieces:
            raise CelstackError(f"pieces: must be some of {ALL}, not {shown(pieces)}")
        # Pieces that fill more than a third of the canvas may never find a place, and all
        # of many pieces hardly ever find theirs at once: here one try in a hundred does.
        if 75 * per_image * max(4, per_image) > side**2 and not overlap:
            raise CelstackError(f"per_image: {per_image} pieces are too many for side {side}")
        self.only_generated(
            pieces=pieces != ALL,
            per_image=per_image != 3,
            side=side != 35,
            ground=ground != 0,
            overlap=overlap,
            seed=seed != 0,
        )
        self.pieces, self.per_image, self.side, self.seed = pieces, per_image, side, seed
        self.ground, self.overlap = ground, overlap
        self.most_objects = per_image
        self.shapes, self.class_names = _shapes(pieces)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colors, square."""
        return (3, self.side, self.side)

    def facts(self) -> Mapping[str, Any]:
        """Return all options that images depend on."""
        return {
            "pieces": self.pieces,
            "per_image": self.per_image,
            "side": self.side,
            "ground": self.ground,
            "overlap": self.overlap,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: Writer) -> None:
        """Choose and paint some thousand images at a time, each time with its own seed."""
        total = self.counts[split]
        for chunk, start in enumerate(range(0, total, CHUNK)):
            placed = self._place_chunk([self.seed, self.splits.index(split), chunk])
            writer.add(*self._paint(placed[: total - start]))

    def from_record(self, record: Record) -> Labeled:
        """Tell the class of each piece from its mask, whatever number it was published with."""
        pieces = [self._class_of(mask) for mask in record.masks[1:]]
        if not 0 < np.count_nonzero(pieces) <= self.per_image:
            raise CelstackError(f"{np.count_nonzero(pieces)} pieces, not 1 to 3")
        return record.label(np.array([0, *pieces]))

    def from_folder(self, published: Labeled) -> Labeled | None:
        """Do the same with a folder's masks."""
        if super().from_folder(published) is None:
            return None
        entities = int(published.instances.max()) + 1
        masks = published.instances == np.arange(entities)[:, None, None]
        return self.from_record(Record(published.image, masks, {}))

    def _paint(self, placed: NDArray[np.int64]) -> tuple[NDArray[np.uint8], ...]:
        """Return images and their labels."""
        kinds, rows, columns, colors = np.moveaxis(placed, 2, 0)
        batch, where = np.arange(len(placed))[:, None, None], self._where(kinds, rows, columns)
        shape = (len(placed), self.side**2)
        images = np.full((*shape, 3), round(255 * self.ground), np.uint8)
        images[batch, where] = self._pixels[1][kinds][..., None] * COLORS[colors][:, :, None]
        instances, classes = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
        instances[batch, where] = np.arange(1, self.per_image + 1)[:, None]
        classes[batch, where] = kinds[..., None] + 1
        square = (len(placed), self.side, self.side)
        return images.reshape(*square, 3), instances.reshape(square), classes.reshape(square)

    def _class_of(self, mask: NDArray[np.bool_]) -> int:
        """Return the class of a piece, or 0 for one without pixels."""
        if not mask.any():
            return 0
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        number = self._by_pixels.get((box.shape, box.tobytes()))
        if number is None:
            raise CelstackError("one of its masks is no tetromino")
        return number

    @cached_property
    def _by_pixels(self) -> dict[tuple[tuple[int, ...], bytes], int]:
        """Tell the classes by what their masks look like."""
        masks = [np.kron(shape, np.ones_like(BLOCK)) > 0 for shape in self.shapes]
        return {(mask.shape, mask.tobytes()): number for number, mask in enumerate(masks, 1)}

    def _place_chunk(self, seed: list[int]) -> NDArray[np.int64]:
        """Choose shape, row, column and color of every piece: (images, pieces, 4)."""
        random = np.random.default_rng(seed)
        kinds = random.integers(len(self.shapes), size=(CHUNK, self.per_image))
        colors = random.integers(len(COLORS), size=kinds.shape)
        sizes = np.array([shape.shape for shape in self.shapes])[kinds] * len(BLOCK)
        corners = np.zeros_like(sizes)
        # Only places are drawn again, so that every shape stays equally frequent.
        open_ = np.arange(CHUNK)
        while len(open_):
            corners[open_] = random.integers(self.side - sizes[open_] + 1)
            rows, columns = np.moveaxis(corners[open_], 2, 0)
            where = self._where(kinds[open_], rows, columns).reshape(len(open_), -1)
            where.sort(axis=1)
            clash = (where[:, 1:] == where[:, :-1]).any(axis=1)
            open_ = open_[clash & (not self.overlap)]
        return np.stack([kinds, corners[..., 0], corners[..., 1], colors], axis=2)

    def _where(
        self, kinds: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """List the canvas pixels of every piece; each has four blocks of 25."""
        return self._pixels[0][kinds] + (rows * self.side + columns)[..., None]

    @cached_property
    def _pixels(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        offsets, values = [], []
        for shape in self.shapes:
            texture = np.kron(shape, BLOCK)
            row, column = np.nonzero(texture)
            offsets.append(row * self.side + column)
            values.append(texture[row, column])
        return np.stack(offsets), np.stack(values)


def _shapes(pieces: str) -> tuple[list[NDArray[np.uint8]], tuple[str, ...]]:
    """Turn each piece in all ways that differ."""
    found: dict[tuple[tuple[int, ...], bytes], tuple[NDArray[np.uint8], str]] = {}
    for piece in dict.fromkeys(pieces):
        cells = np.array([[int(cell) for cell in row] for row in PIECES[piece]], np.uint8)
        for quarter in range(4):
            turned = np.ascontiguousarray(np.rot90(cells, quarter))
            name = f"{piece}{90 * quarter}"
            found.setdefault((turned.shape, turned.tobytes()), (turned, name))
    return [shape for shape, _ in found.values()], tuple(name for _, name in found.values())


@hookimpl
def celstack_datasets() -> dict[str, type[Tetrominoes]]:
    """Let recipes say ``use = "tetrominoes"``."""
    return {"tetrominoes": Tetrominoes}

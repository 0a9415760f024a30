"""Tetrominoes: pieces of four blocks on a black canvas, without overlap."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from celstack import CelstackError, Source, hookimpl
from celstack.text import format_value
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, MultiObjectDataset
from celstack_kit.dataset_support.object_records import ObjectRecord

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
CHUNK_IMAGES = 4096


class Tetrominoes(MultiObjectDataset):
    """Three pieces in six colors on a canvas of 35 x 35, without overlap.

    They are generated, pixel by pixel like those of the published set. ``pieces`` says which
    of the seven tetrominoes occur, each in all rotations: 19 shapes for all seven. ``ground``
    is the brightness of the background, black as published; on another, masks matter
    everywhere. With ``overlap``, positions are unconstrained and later pieces occlude earlier
    ones, possibly fully. ``seed`` is the generator's; the run's seed does not change the
    images, so that runs can be compared. Images are kept in the user's cache.

    With ``source = "records"`` they are read from the published ``tetrominoes_train.tfrecords``
    (gzipped or not), with ``source = "folder"`` from the folders ``images``, ``masks`` and
    ``sem_masks`` of ``<number>.png``; both are searched for in ``root``, else in the folder
    that CELSTACK_DATA names, then in the user's cache. The first ``count`` images are for
    training and the next ``test_count`` for evaluation; the paper evaluates on the first 320
    training images. Classes are derived from the pieces' masks.
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
            raise CelstackError(f"pieces: must be some of {ALL}, not {format_value(pieces)}")
        # Rejection sampling: pieces that fill more than a third of the canvas may never fit,
        # and many pieces rarely fit at once; at this limit one attempt in a hundred does.
        if 75 * per_image * max(4, per_image) > side**2 and not overlap:
            raise CelstackError(f"per_image: {per_image} pieces are too many for side {side}")
        self.require_generated(
            pieces=pieces != ALL,
            per_image=per_image != 3,
            side=side != 35,
            ground=ground != 0,
            overlap=overlap,
            seed=seed != 0,
        )
        self.pieces, self.per_image, self.side, self.seed = pieces, per_image, side, seed
        self.ground, self.overlap = ground, overlap
        self.max_objects = per_image
        self.shapes, self.class_names = _shapes(pieces)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three channels, square."""
        return (3, self.side, self.side)

    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on."""
        return {
            "pieces": self.pieces,
            "per_image": self.per_image,
            "side": self.side,
            "ground": self.ground,
            "overlap": self.overlap,
            "seed": self.seed,
        }

    def generate(self, split: str, writer: CacheWriter) -> None:
        """Generate the images of a split in chunks, each with a seed of its own."""
        total = self.counts[split]
        for chunk, start in enumerate(range(0, total, CHUNK_IMAGES)):
            placed = self._sample_chunk([self.seed, self.splits.index(split), chunk])
            writer.add(*self._render(placed[: total - start]))

    def from_record(self, record: ObjectRecord) -> LabeledImage:
        """Derive the class of each piece from its mask; published numbers are ignored."""
        pieces = [self._class_of(mask) for mask in record.masks[1:]]
        if not 0 < np.count_nonzero(pieces) <= self.per_image:
            raise CelstackError(f"{np.count_nonzero(pieces)} pieces, not 1 to 3")
        return record.label(np.array([0, *pieces]))

    def from_folder(self, published: LabeledImage) -> LabeledImage | None:
        """Derive the classes from the instance map."""
        if super().from_folder(published) is None:
            return None
        entities = int(published.instances.max()) + 1
        masks = published.instances == np.arange(entities)[:, None, None]
        return self.from_record(ObjectRecord(published.image, masks, {}))

    def _render(self, placed: NDArray[np.int64]) -> tuple[NDArray[np.uint8], ...]:
        """Render images, instance maps and class maps."""
        kinds, rows, columns, colors = np.moveaxis(placed, 2, 0)
        batch, where = (
            np.arange(len(placed))[:, None, None],
            self._pixel_indices(kinds, rows, columns),
        )
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
        number = self._class_by_mask.get((box.shape, box.tobytes()))
        if number is None:
            raise CelstackError("one of its masks is no tetromino")
        return number

    @cached_property
    def _class_by_mask(self) -> dict[tuple[tuple[int, ...], bytes], int]:
        """Map the masks of all shapes to class ids."""
        masks = [np.kron(shape, np.ones_like(BLOCK)) > 0 for shape in self.shapes]
        return {(mask.shape, mask.tobytes()): number for number, mask in enumerate(masks, 1)}

    def _sample_chunk(self, seed: list[int]) -> NDArray[np.int64]:
        """Sample shape, row, column and color of every piece: (images, pieces, 4)."""
        random = np.random.default_rng(seed)
        kinds = random.integers(len(self.shapes), size=(CHUNK_IMAGES, self.per_image))
        colors = random.integers(len(COLORS), size=kinds.shape)
        sizes = np.array([shape.shape for shape in self.shapes])[kinds] * len(BLOCK)
        corners = np.zeros_like(sizes)
        # Only positions are sampled again, so that all shapes stay equally frequent.
        open_ = np.arange(CHUNK_IMAGES)
        while len(open_):
            corners[open_] = random.integers(self.side - sizes[open_] + 1)
            rows, columns = np.moveaxis(corners[open_], 2, 0)
            where = self._pixel_indices(kinds[open_], rows, columns).reshape(len(open_), -1)
            where.sort(axis=1)
            clash = (where[:, 1:] == where[:, :-1]).any(axis=1)
            open_ = open_[clash & (not self.overlap)]
        return np.stack([kinds, corners[..., 0], corners[..., 1], colors], axis=2)

    def _pixel_indices(
        self, kinds: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the flat canvas indices of the 100 pixels of every piece."""
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
    """Return the distinct rotations of the pieces, and their names."""
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

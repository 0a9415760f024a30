"""Tetrominoes: pieces of four blocks on a black canvas, without overlap, made on the spot."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Interval
from numpy.typing import NDArray

from celstack import Batch, CelstackError, Dataset, hookimpl

PIECES = {
    "I": ["1111"],
    "O": ["11", "11"],
    "T": ["111", "010"],
    "S": ["011", "110"],
    "Z": ["110", "011"],
    "J": ["100", "111"],
    "L": ["001", "111"],
}
COLOURS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], np.uint8)
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
SPLITS = ("train", "test")
CHUNK = 4096


class Tetrominoes(Dataset):
    """Images of the same kind as the published set: 35 x 35, three pieces, six colours.

    ``pieces`` says which of the seven tetrominoes occur, each in all its rotations: 19
    shapes for all seven. ``ground`` is the brightness behind them, black as published; on
    another, the masks of pieces matter everywhere. ``seed`` chooses the collection; the run's
    own seed does not change it, so that runs can be compared.
    """

    splits = SPLITS

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 60_000,
        test_count: Annotated[int, Ge(1)] = 320,
        pieces: str = "IOTSZJL",
        per_image: Annotated[int, Ge(1)] = 3,
        side: Annotated[int, Ge(20)] = 35,
        ground: Annotated[float, Interval(ge=0, le=1)] = 0.0,
        seed: Annotated[int, Ge(0)] = 0,
    ) -> None:
        unknown = sorted(set(pieces) - set(PIECES))
        if unknown or not pieces:
            raise CelstackError(f"pieces: must be some of {''.join(PIECES)}, not '{pieces}'")
        # Pieces that fill more than a third of the canvas may never find a place, and all
        # of many pieces hardly ever find theirs at once: here one try in a hundred does.
        if 75 * per_image * max(4, per_image) > side**2:
            raise CelstackError(f"per_image: {per_image} pieces are too many for side {side}")
        self.counts = {"train": count, "test": test_count}
        self.pieces, self.per_image, self.side, self.seed = pieces, per_image, side, seed
        self.ground = ground
        self.most_objects = per_image
        self.shapes, self.class_names = _shapes(pieces)
        self._scenes: dict[str, NDArray[np.int64]] = {}

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three colours, square."""
        return (3, self.side, self.side)

    def count(self, split: str) -> int:
        """Return how many images were asked for."""
        return self.counts[split]

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Paint the images from what is known of their pieces."""
        if split not in self._scenes:
            self._scenes[split] = self._place(split)
        kinds, rows, columns, colours = np.moveaxis(self._scenes[split][list(indices)], 2, 0)
        batch, where = (
            np.arange(len(indices))[:, None, None],
            self._where(kinds, rows, columns),
        )
        ground = round(255 * self.ground)
        images = np.full((len(indices), self.side**2, 3), ground, np.uint8)
        images[batch, where] = self._pixels[1][kinds][..., None] * COLOURS[colours][:, :, None]
        instances = np.zeros((len(indices), self.side**2), np.int64)
        classes = np.zeros_like(instances)
        instances[batch, where] = np.arange(1, self.per_image + 1)[:, None]
        classes[batch, where] = kinds[..., None] + 1
        shape = (len(indices), self.side, self.side)
        pixels = torch.from_numpy(images.reshape(*shape, 3)).permute(0, 3, 1, 2)
        return Batch(
            pixels.contiguous().float() / 255,
            torch.from_numpy(instances.reshape(shape)),
            torch.from_numpy(classes.reshape(shape)),
        )

    def _place(self, split: str) -> NDArray[np.int64]:
        """Choose shape, row, column and colour of every piece: (images, pieces, 4)."""
        total = self.counts[split]
        chunks = range(-(-total // CHUNK))
        placed = [
            self._place_chunk([self.seed, SPLITS.index(split), chunk]) for chunk in chunks
        ]
        return np.concatenate(placed)[:total]

    def _place_chunk(self, seed: list[int]) -> NDArray[np.int64]:
        random = np.random.default_rng(seed)
        kinds = random.integers(len(self.shapes), size=(CHUNK, self.per_image))
        colours = random.integers(len(COLOURS), size=kinds.shape)
        sizes = np.array([shape.shape for shape in self.shapes])[kinds] * len(BLOCK)
        corners = np.zeros_like(sizes)
        # Only places are drawn again, so that every shape stays equally frequent.
        open_ = np.arange(CHUNK)
        while len(open_):
            corners[open_] = random.integers(self.side - sizes[open_] + 1)
            rows, columns = np.moveaxis(corners[open_], 2, 0)
            where = self._where(kinds[open_], rows, columns).reshape(len(open_), -1)
            where.sort(axis=1)
            open_ = open_[(where[:, 1:] == where[:, :-1]).any(axis=1)]
        return np.stack([kinds, corners[..., 0], corners[..., 1], colours], axis=2)

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

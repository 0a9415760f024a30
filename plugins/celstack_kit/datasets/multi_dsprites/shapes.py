"""The shapes of dSprites: a square, an ellipse and a heart in all their poses."""

import zipfile
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack.progress import WorkProgress
from celstack_kit.formats.read_errors import naming

NAMES = ("square", "ellipse", "heart")
SIDE = 64
POSES = (3, 6, 40, 32, 32)
"""How many shapes, scales, orientations, columns and rows there are, in this order."""
SCALES = np.linspace(0.5, 1, POSES[1])
# As published, the last orientation is the first one again.
TURNS = np.linspace(0, 2 * np.pi, POSES[2])
FIRST = 16
"""The first column and row that a center lies on; the others follow pixel by pixel."""
REACH = 15
"""No pixel of a shape is further away from its center, in columns or rows."""
MEMBER = "imgs.npy"
Poses = NDArray[np.int64]


class Shapes(ABC):
    """Where masks come from."""

    @abstractmethod
    def masks(self, poses: Poses) -> NDArray[np.bool_]:
        """Return the pixels (n, 64, 64) of shapes in these poses (n, 5), each below POSES."""


class Drawn(Shapes):
    """Shapes as large as those of dSprites, drawn on the spot and not antialiased.

    At full scale the square is 21 pixels wide, the ellipse 27 by 15, the heart 23 by 21. A
    turn is clockwise; the heart begins with its point down.
    """

    def __init__(self) -> None:
        steps = np.arange(-REACH, REACH + 1)
        down, right = steps[:, None], steps[None, :]
        size, turn = SCALES[:, None, None, None], TURNS[:, None, None]
        along = (np.cos(turn) * right + np.sin(turn) * down) / size
        across = (np.cos(turn) * down - np.sin(turn) * right) / size
        # No pixel's center lies on an edge, where rounding would decide.
        square = np.maximum(np.abs(along), np.abs(across)) < 10.25
        ellipse = (along / 13.2) ** 2 + (across / 7.3) ** 2 < 1
        # The curve of sixth degree, raised a little to turn about the middle of its height.
        x, y = along / 9.7, 0.118 - across / 9.7
        heart = (x**2 + y**2 - 1) ** 3 < x**2 * y**3
        self.windows = np.stack([square, ellipse, heart])

    def masks(self, poses: Poses) -> NDArray[np.bool_]:
        """Put the shapes into empty canvases; none reaches beyond one."""
        shape, scale, turn, column, row = poses.T
        canvas = np.zeros((len(poses), SIDE, SIDE), np.bool_)
        steps = np.arange(FIRST - REACH, FIRST + REACH + 1)
        rows, columns = row[:, None] + steps, column[:, None] + steps
        image = np.arange(len(poses))[:, None, None]
        canvas[image, rows[:, :, None], columns[:, None, :]] = self.windows[shape, scale, turn]
        return canvas


class Published(Shapes):
    """The very images of dSprites, from its ``.npz`` file; eight pixels take a byte here."""

    def __init__(self, path: Path) -> None:
        total = int(np.prod(POSES))
        self.packed = np.empty((total, SIDE**2 // 8), np.uint8)
        with naming(path), zipfile.ZipFile(path) as archive, archive.open(MEMBER) as file:
            np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0(file)
            if header != ((total, SIDE, SIDE), False, np.dtype(np.uint8)):
                shape, _, dtype = header
                text = f"{MEMBER} is {dtype} {shape}, not uint8 {(total, SIDE, SIDE)}"
                raise CelstackError(f"{path}: {text}")
            with WorkProgress("dsprites: reading shapes", total) as waiting:
                # The file unpacks to three gigabytes, which are never in memory at once.
                for start in range(0, total, 1024):
                    chunk = self.packed[start : start + 1024]
                    data = file.read(len(chunk) * SIDE**2)
                    if len(data) < len(chunk) * SIDE**2:
                        raise CelstackError(f"{path}: {MEMBER} ends too soon")
                    pixels = np.frombuffer(data, np.uint8).reshape(len(chunk), -1)
                    chunk[:] = np.packbits(pixels > 0, axis=1)
                    waiting.advance(len(chunk))

    def masks(self, poses: Poses) -> NDArray[np.bool_]:
        """Look the images up."""
        found = self.packed[np.ravel_multi_index(tuple(poses.T), POSES)]
        return np.unpackbits(found, axis=1).reshape(-1, SIDE, SIDE) > 0

"""Masks of dSprites' shapes, square, ellipse and heart, in all poses."""

import zipfile
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack.progress import WorkProgress
from celstack_kit.formats.read_errors import blame_file

NAMES = ("square", "ellipse", "heart")
SIDE = 64
POSES = (3, 6, 40, 32, 32)
"""Number of shapes, scales, orientations, columns and rows, in this order."""
SCALES = np.linspace(0.5, 1, POSES[1])
# As published, the last orientation equals the first.
TURNS = np.linspace(0, 2 * np.pi, POSES[2])
FIRST_CENTER = 16
"""First column and row of a center; the others follow at steps of one pixel."""
MAX_RADIUS_PIXELS = 15
"""Maximum distance of a shape's pixels from its center, in columns or rows."""
MEMBER = "imgs.npy"
PoseIndices = NDArray[np.int64]


class ShapeMasks(ABC):
    """The source of shape masks."""

    @abstractmethod
    def masks(self, poses: PoseIndices) -> NDArray[np.bool_]:
        """Return masks (n, 64, 64) for pose indices (n, 5), bounded by POSES."""


class DrawnShapes(ShapeMasks):
    """Shapes of the same size as dSprites', computed analytically, without antialiasing.

    At full scale the square is 21 pixels wide, the ellipse 27 by 15, the heart 23 by 21.
    Orientations are clockwise angles; at 0 the heart's point is down.
    """

    def __init__(self) -> None:
        steps = np.arange(-MAX_RADIUS_PIXELS, MAX_RADIUS_PIXELS + 1)
        down, right = steps[:, None], steps[None, :]
        size, turn = SCALES[:, None, None, None], TURNS[:, None, None]
        along = (np.cos(turn) * right + np.sin(turn) * down) / size
        across = (np.cos(turn) * down - np.sin(turn) * right) / size
        # The sizes are such that no pixel center lies on an edge, where rounding would matter.
        square = np.maximum(np.abs(along), np.abs(across)) < 10.25
        ellipse = (along / 13.2) ** 2 + (across / 7.3) ** 2 < 1
        # The sextic heart curve, shifted to rotate about the middle of its height.
        x, y = along / 9.7, 0.118 - across / 9.7
        heart = (x**2 + y**2 - 1) ** 3 < x**2 * y**3
        self.windows = np.stack([square, ellipse, heart])

    def masks(self, poses: PoseIndices) -> NDArray[np.bool_]:
        """Copy the shapes' windows into empty canvases, which always contain them."""
        shape, scale, turn, column, row = poses.T
        canvas = np.zeros((len(poses), SIDE, SIDE), np.bool_)
        steps = np.arange(
            FIRST_CENTER - MAX_RADIUS_PIXELS, FIRST_CENTER + MAX_RADIUS_PIXELS + 1
        )
        rows, columns = row[:, None] + steps, column[:, None] + steps
        image = np.arange(len(poses))[:, None, None]
        canvas[image, rows[:, :, None], columns[:, None, :]] = self.windows[shape, scale, turn]
        return canvas


class PublishedShapes(ShapeMasks):
    """The shapes of dSprites' ``.npz`` file, held in memory as packed bits."""

    def __init__(self, path: Path) -> None:
        total = int(np.prod(POSES))
        self.packed = np.empty((total, SIDE**2 // 8), np.uint8)
        with blame_file(path), zipfile.ZipFile(path) as archive, archive.open(MEMBER) as file:
            np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0(file)
            if header != ((total, SIDE, SIDE), False, np.dtype(np.uint8)):
                shape, _, dtype = header
                text = f"{MEMBER} is {dtype} {shape}, not uint8 {(total, SIDE, SIDE)}"
                raise CelstackError(f"{path}: {text}")
            with WorkProgress("dsprites: reading shapes", total) as progress:
                # In chunks: uncompressed, the file has three gigabytes.
                for start in range(0, total, 1024):
                    chunk = self.packed[start : start + 1024]
                    data = file.read(len(chunk) * SIDE**2)
                    if len(data) < len(chunk) * SIDE**2:
                        raise CelstackError(f"{path}: {MEMBER} ends too soon")
                    pixels = np.frombuffer(data, np.uint8).reshape(len(chunk), -1)
                    chunk[:] = np.packbits(pixels > 0, axis=1)
                    progress.advance(len(chunk))

    def masks(self, poses: PoseIndices) -> NDArray[np.bool_]:
        """Unpack the masks of these poses."""
        found = self.packed[np.ravel_multi_index(tuple(poses.T), POSES)]
        return np.unpackbits(found, axis=1).reshape(-1, SIDE, SIDE) > 0

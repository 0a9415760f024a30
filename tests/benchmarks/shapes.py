"""How many of the tetrominoes the sprites of a run are.

    python tests/benchmarks/shapes.py RUN ...

Compares the sprites in each run's folder with all 19 shapes, wherever they are in their
pictures. A shape is found if some sprite's mask differs from it in at most two pixels.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.signal import correlate2d

from celstack_kit.datasets.tetrominoes import Tetrominoes

WRONG = 2


def differs(mask: np.ndarray, shape: np.ndarray) -> int:
    """Count the pixels that differ where the two fit best."""
    shared = correlate2d(mask.astype(int), shape.astype(int)).max()
    return int(mask.sum() + shape.sum() - 2 * shared)


def main() -> None:
    dataset = Tetrominoes()
    shapes = [np.kron(shape, np.ones((5, 5), np.uint8)) for shape in dataset.shapes]
    for run in sys.argv[1:]:
        pictures = sorted(Path(run, "sprites").glob("*.png"))
        masks = [np.array(Image.open(picture))[:, :, -1] > 127 for picture in pictures]
        table = np.array([[differs(mask, shape) for mask in masks] for shape in shapes])
        missing = [
            name
            for name, row in zip(dataset.class_names, table, strict=True)
            if row.min() > WRONG
        ]
        spare = [number for number, column in enumerate(table.T) if column.min() > WRONG]
        found = f"{len(shapes) - len(missing)} of {len(shapes)} shapes"
        print(f"{run}: {found}, missing {missing}, sprites of no shape {spare}")


if __name__ == "__main__":
    main()

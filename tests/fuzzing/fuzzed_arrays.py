"""Arrays: the .mat files of SVHN, and the .npy files that datasets keep."""

import io
import shutil
import zlib

import numpy as np
from mutations import mutated_bytes
from scipy.io import savemat
from trial import Kind

from celstack_kit.dataset_support.cache_writer import ARRAYS
from celstack_kit.dataset_support.image_cache import CachedImages
from celstack_kit.datasets.svhn import Svhn

HEADER = 128
"""Bytes before the first variable of a .mat file."""


class Matrices(Kind):
    """SVHN reads them."""

    def __init__(self, folder):
        super().__init__(folder)
        images, digits = np.arange(6144).reshape(32, 32, 3, 2), [[1], [10]]
        table = {"X": images.astype(np.uint8), "y": np.array(digits, np.uint8)}
        others = {
            "X": np.array([[{"a": 1}, "text"]], dtype=object),
            "y": {"field": [1, 2]},
            "z": "text",
        }
        self.files = [
            saved_matrices(table, do_compression=True),
            saved_matrices(table),
            saved_matrices(table | {"X": images.astype(float)}),
            saved_matrices({"X": images[..., 0, 0], "y": digits}, format="4"),
            saved_matrices(others),
        ]
        self.path = folder / "test_32x32.mat"

    def attempt(self, random):
        data = random.choice(self.files[:2] + self.files)
        choice = random.random()
        if choice < 0.5:
            # The first bytes say what all others are.
            data = (
                data[:HEADER]
                + mutated_bytes(random, data[HEADER : HEADER + 96])
                + data[HEADER + 96 :]
            )
        elif choice < 0.8:
            data = mutated_bytes(random, data)
        else:
            data = packed(mutated_bytes(random, self.files[1][HEADER:]), self.files[1])
        self.path.write_bytes(data)
        dataset = Svhn(self.folder, extra=False)
        assert dataset.read("test", range(dataset.count("test"))).images.isfinite().all()


def saved_matrices(table, **options):
    file = io.BytesIO()
    savemat(file, table, **options)
    return file.getvalue()


def packed(variables, like):
    """Return a file of one compressed element, sound as a stream, whatever is in it."""
    squeezed = zlib.compress(variables)
    return (
        like[:HEADER]
        + (15).to_bytes(4, "little")
        + len(squeezed).to_bytes(4, "little")
        + squeezed
    )


class KeptArrays(Kind):
    """What generated datasets keep in the user's cache is opened again."""

    def __init__(self, folder):
        super().__init__(folder)
        self.kept = folder / "kept"
        shapes = ((2, 4, 4, 3), (2, 4, 4), (2, 4, 4))
        self.files = {}
        for name, shape in zip(ARRAYS, shapes, strict=True):
            file = io.BytesIO()
            np.save(file, np.ones(shape, np.uint8))
            self.files[name] = file.getvalue()

    def attempt(self, random):
        shutil.rmtree(self.kept, ignore_errors=True)
        self.kept.mkdir()
        spoilt = random.choice(ARRAYS)
        for name, data in self.files.items():
            spoil = name == spoilt or random.random() < 0.1
            changed = self.mutated(random, data) if spoil else data
            (self.kept / f"{name}.npy").write_bytes(changed)
        kept = CachedImages.open(self.kept)
        assert kept.read(range(len(kept))).images.isfinite().all()

    def mutated(self, random, data):
        if random.random() < 0.5:
            return mutated_bytes(random, data)
        header = mutated_bytes(random, data[10:128].rstrip()).replace(b"\n", b" ")
        header = header.ljust(117) + b"\n"
        return data[:8] + len(header).to_bytes(2, "little") + header + data[128:]

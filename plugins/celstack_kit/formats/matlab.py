"""Arrays of numbers in MATLAB 5 files, read strictly.

Not by SciPy, whose compiled reader believes what a file says of itself: a damaged one ends the
process, and one that claims terabytes asks for them.
"""

import struct
import zlib
from collections.abc import Container
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

HEADER = 128
CHUNK = 2**20
MATRIX, COMPRESSED = 14, 15
FLAGS, DIMENSIONS, NAME = 6, 5, 1
NUMBERS = dict(zip(range(1, 8), ("i1", "u1", "i2", "u2", "i4", "u4", "f4"), strict=True))
NUMBERS |= {9: "f8", 12: "i8", 13: "u8"}
"""How numbers are stored, by the type of an element ..."""
CLASSES = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
FIRST_CLASS = 6
"""... and what they are, by the class of an array; small ones may be stored as smaller."""
COMPLEX = 8
DENSEST = 1100
"""Zlib packs no byte into less than a thousandth."""
DEEPEST = 8
"""No image or label has more dimensions."""


def read_arrays(path: Path, names: Container[str]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of real numbers that have these names.

    A file that is damaged raises ValueError or OSError.
    """
    with path.open("rb") as file:
        header, size = file.read(HEADER), path.stat().st_size
        # The last two bytes are MI, and tell by their order which byte comes first.
        order = {b"IM": "<", b"MI": ">"}.get(header[126:], "")
        if not order or header[125 if order == "<" else 124] != 1:
            raise ValueError("no MATLAB file of version 5")
        found = {}
        while file.tell() < size:
            kind, length = struct.unpack(f"{order}II", _exactly(file, 8))
            end = file.tell() + length
            if end > size:
                raise ValueError(f"{length} bytes at byte {end - length}, but it ends before")
            if kind in (MATRIX, COMPRESSED):
                packed = _Unpacked(file, length) if kind == COMPRESSED else None
                read = _read_matrix(packed or file, order, names, length, packed is not None)
                found.update(read)
            file.seek(end)
    return found


class _Unpacked:
    """What a compressed element holds, unpacked as it is asked for."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self.file, self.left = file, length
        self.unpack = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        """Return so many bytes, or fewer at the end."""
        parts = []
        while size and not self.unpack.eof:
            packed = self.unpack.unconsumed_tail
            if not packed:
                packed = self.file.read(min(CHUNK, self.left))
                self.left -= len(packed)
            try:
                parts.append(self.unpack.decompress(packed, size))
            except zlib.error as error:
                raise ValueError(str(error)) from error
            size -= len(parts[-1])
            if not packed and not parts[-1]:
                break
        return b"".join(parts)


def _read_matrix(
    stream: BinaryIO | _Unpacked, order: str, names: Container[str], length: int, packed: bool
) -> dict[str, NDArray[np.generic]]:
    """Return the array of one element under its name; nothing if it is not wanted."""
    if packed:
        kind, inner = struct.unpack(f"{order}II", _exactly(stream, 8))
        if kind != MATRIX:
            return {}
        if inner > DENSEST * length:
            raise ValueError(f"{inner} bytes, packed into {length}")
        length = inner
    flags = np.frombuffer(_small(stream, order, FLAGS, length), f"{order}u4")
    dimensions = np.frombuffer(_small(stream, order, DIMENSIONS, length), f"{order}i4")
    name = _small(stream, order, NAME, length).decode("ascii", "replace")
    if name not in names:
        return {}
    if len(flags) != 2 or not 1 <= len(dimensions) <= DEEPEST or (dimensions < 0).any():
        raise ValueError(f"{name} has no sound size")
    number = (int(flags[0]) & 255) - FIRST_CLASS
    if not 0 <= number < len(CLASSES) or int(flags[0]) >> 8 & COMPLEX:
        return {}
    kind, size, data = _tag(stream, order)
    stored = np.dtype(f"{order}{NUMBERS.get(kind, 'V0')}")
    shape = [int(count) for count in dimensions]
    # As Python's whole numbers, which never overflow.
    count = int(np.prod(np.array(shape, dtype=object)))
    if not stored.itemsize or size != count * stored.itemsize or size > length:
        raise ValueError(f"{name} is {shape}, which are not {size} bytes")
    numbers = np.frombuffer(data[:size] if data else _filled(stream, size), stored)
    return {name: numbers.reshape(shape, order="F").astype(CLASSES[number], copy=False)}


def _small(stream: BinaryIO | _Unpacked, order: str, wanted: int, length: int) -> bytes:
    """Return the bytes of an element that is small and of one type."""
    kind, size, data = _tag(stream, order)
    if kind != wanted or size > min(length, 2**10):
        raise ValueError(f"an element of type {kind} and {size} bytes, where {wanted} belongs")
    if data:
        return data[:size]
    content = _exactly(stream, size)
    _exactly(stream, -size % 8)
    return content


def _tag(stream: BinaryIO | _Unpacked, order: str) -> tuple[int, int, bytes]:
    """Return type and size of an element; of one with up to four bytes, these, too."""
    head = _exactly(stream, 8)
    word, size = struct.unpack(f"{order}II", head)
    if word >> 16:
        if word >> 16 > 4:
            raise ValueError(f"{word >> 16} bytes in the place of four")
        return word & 0xFFFF, word >> 16, head[4:]
    return word, size, b""


def _exactly(stream: BinaryIO | _Unpacked, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("it ends too soon")
    return data


def _filled(stream: BinaryIO | _Unpacked, size: int) -> NDArray[np.uint8]:
    """Read so many bytes, without a second copy of what may be gigabytes."""
    buffer = np.empty(size, np.uint8)
    for start in range(0, size, CHUNK):
        part = _exactly(stream, min(CHUNK, size - start))
        buffer[start : start + len(part)] = np.frombuffer(part, np.uint8)
    return buffer

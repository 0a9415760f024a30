"""Read numeric arrays from MATLAB 5 files, with strict checks.

SciPy's compiled reader trusts the sizes in a file: a damaged file can crash the process, or
allocate terabytes. So this reader checks sizes first.
"""

import struct
import zlib
from collections.abc import Container
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 128
CHUNK_BYTES = 2**20
MATRIX, COMPRESSED = 14, 15
FLAGS, DIMENSIONS, NAME = 6, 5, 1
NUMBERS = dict(zip(range(1, 8), ("i1", "u1", "i2", "u2", "i4", "u4", "f4"), strict=True))
NUMBERS |= {9: "f8", 12: "i8", 13: "u8"}
"""NumPy types in which numbers are stored, by the type code of a data element."""
CLASSES = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
FIRST_NUMERIC_CLASS = 6
"""Class code of CLASSES[0]; numbers may be stored in a smaller type than their class."""
COMPLEX = 8
MAX_COMPRESSION_RATIO = 1100
"""Zlib compresses by at most about 1000:1; larger claims are false."""
MAX_DIMENSIONS = 8
"""Arrays of images and labels have fewer dimensions."""


def read_arrays(path: Path, names: Container[str]) -> dict[str, NDArray[np.generic]]:
    """Return the real arrays with these names.

    Raises:
        ValueError: The file is damaged.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        header, size = file.read(HEADER_BYTES), path.stat().st_size
        # The last two bytes are the characters MI in the byte order of the file.
        order = {b"IM": "<", b"MI": ">"}.get(header[126:], "")
        if not order or header[125 if order == "<" else 124] != 1:
            raise ValueError("no MATLAB file of version 5")
        found = {}
        while file.tell() < size:
            kind, length = struct.unpack(f"{order}II", _read_exactly(file, 8))
            end = file.tell() + length
            if end > size:
                raise ValueError(f"{length} bytes at byte {end - length}, but it ends before")
            if kind in (MATRIX, COMPRESSED):
                packed = _DecompressedElement(file, length) if kind == COMPRESSED else None
                read = _read_matrix(packed or file, order, names, length, packed is not None)
                found.update(read)
            file.seek(end)
    return found


class _DecompressedElement:
    """The stream that decompresses a compressed element on demand."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self.file, self.left = file, length
        self.unpack = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        """Return ``size`` decompressed bytes, or fewer at the end."""
        parts = []
        while size and not self.unpack.eof:
            packed = self.unpack.unconsumed_tail
            if not packed:
                packed = self.file.read(min(CHUNK_BYTES, self.left))
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
    stream: BinaryIO | _DecompressedElement,
    order: str,
    names: Container[str],
    length: int,
    packed: bool,
) -> dict[str, NDArray[np.generic]]:
    """Return the array of a matrix element by name, or {} if it is not one of ``names``."""
    if packed:
        kind, inner = struct.unpack(f"{order}II", _read_exactly(stream, 8))
        if kind != MATRIX:
            return {}
        if inner > MAX_COMPRESSION_RATIO * length:
            raise ValueError(f"{inner} bytes, packed into {length}")
        length = inner
    flags = np.frombuffer(_read_small_element(stream, order, FLAGS, length), f"{order}u4")
    dimensions = np.frombuffer(
        _read_small_element(stream, order, DIMENSIONS, length), f"{order}i4"
    )
    name = _read_small_element(stream, order, NAME, length).decode("ascii", "replace")
    if name not in names:
        return {}
    if len(flags) != 2 or not 1 <= len(dimensions) <= MAX_DIMENSIONS or (dimensions < 0).any():
        raise ValueError(f"{name} has no valid size")
    number = (int(flags[0]) & 255) - FIRST_NUMERIC_CLASS
    if not 0 <= number < len(CLASSES) or int(flags[0]) >> 8 & COMPLEX:
        return {}
    kind, size, data = _read_tag(stream, order)
    stored = np.dtype(f"{order}{NUMBERS.get(kind, 'V0')}")
    shape = [int(count) for count in dimensions]
    # As Python integers, which do not overflow.
    count = int(np.prod(np.array(shape, dtype=object)))
    if not stored.itemsize or size != count * stored.itemsize or size > length:
        raise ValueError(f"{name} is {shape}, which are not {size} bytes")
    numbers = np.frombuffer(data[:size] if data else _read_into_array(stream, size), stored)
    return {name: numbers.reshape(shape, order="F").astype(CLASSES[number], copy=False)}


def _read_small_element(
    stream: BinaryIO | _DecompressedElement, order: str, wanted: int, length: int
) -> bytes:
    """Return the bytes of an element of at most 1 KiB, which must be of the wanted type."""
    kind, size, data = _read_tag(stream, order)
    if kind != wanted or size > min(length, 2**10):
        raise ValueError(f"an element of type {kind} and {size} bytes, where {wanted} belongs")
    if data:
        return data[:size]
    content = _read_exactly(stream, size)
    _read_exactly(stream, -size % 8)
    return content


def _read_tag(stream: BinaryIO | _DecompressedElement, order: str) -> tuple[int, int, bytes]:
    """Read an element's tag; return type, size and, for at most four bytes, the data itself."""
    head = _read_exactly(stream, 8)
    word, size = struct.unpack(f"{order}II", head)
    if word >> 16:
        if word >> 16 > 4:
            raise ValueError(f"{word >> 16} bytes in the place of four")
        return word & 0xFFFF, word >> 16, head[4:]
    return word, size, b""


def _read_exactly(stream: BinaryIO | _DecompressedElement, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("it ends too soon")
    return data


def _read_into_array(stream: BinaryIO | _DecompressedElement, size: int) -> NDArray[np.uint8]:
    """Read ``size`` bytes into one buffer; concatenated chunks would double the memory."""
    buffer = np.empty(size, np.uint8)
    for start in range(0, size, CHUNK_BYTES):
        part = _read_exactly(stream, min(CHUNK_BYTES, size - start))
        buffer[start : start + len(part)] = np.frombuffer(part, np.uint8)
    return buffer

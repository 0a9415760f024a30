"""Parse tf.train.Example, the message inside a TFRecord, without TensorFlow or protobuf."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
BYTES, FLOATS, INTEGERS = 1, 2, 3
Feature = NDArray[np.uint8] | NDArray[np.float32] | NDArray[np.int64]


def parse_example(data: bytes) -> dict[str, Feature]:
    """Return the features of an example by name, or raise ValueError.

    The strings of a bytes list are concatenated: an image may be stored as one string, or as
    one string per byte.
    """
    features: dict[str, Feature] = {}
    for message in _fields(memoryview(data), 1, LENGTH_DELIMITED):
        for entry in _fields(message, 1, LENGTH_DELIMITED):
            name = b"".join(_fields(entry, 1, LENGTH_DELIMITED)).decode("utf-8")
            features[name] = _feature(b"".join(_fields(entry, 2, LENGTH_DELIMITED)))
    return features


def _feature(data: bytes) -> Feature:
    view = memoryview(data)
    for message in _fields(view, FLOATS, LENGTH_DELIMITED):
        # Packed or not, the concatenated values are the same bytes.
        return np.frombuffer(b"".join(_fields(message, 1, LENGTH_DELIMITED, FIXED32)), "<f4")
    for message in _fields(view, INTEGERS, LENGTH_DELIMITED):
        return _integers(memoryview(b"".join(_fields(message, 1, LENGTH_DELIMITED, VARINT))))
    return _strings(memoryview(b"".join(_fields(view, BYTES, LENGTH_DELIMITED))))


def _strings(data: memoryview) -> NDArray[np.uint8]:
    # Fast path: a string of length one takes three bytes, namely tag, length and the byte.
    raw = np.frombuffer(data, np.uint8)
    if (
        len(raw) % 3 == 0
        and (raw[0::3] == 8 + LENGTH_DELIMITED).all()
        and (raw[1::3] == 1).all()
    ):
        return raw[2::3]
    return np.frombuffer(b"".join(_fields(data, 1, LENGTH_DELIMITED)), np.uint8)


def _integers(data: memoryview) -> NDArray[np.int64]:
    found, at = [], 0
    while at < len(data):
        number, at = _varint(data, at)
        found.append(number)
    # Negative integers are stored modulo 2 ** 64.
    return np.array(found, np.uint64).astype(np.int64)


def _fields(data: memoryview, wanted: int, *wires: int) -> Iterator[memoryview]:
    """Yield the values of one field that have one of these wire types."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == VARINT:
            size = _varint(data, at)[1] - at
        elif wire == LENGTH_DELIMITED:
            size, at = _varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if size > len(data) - at:
            raise ValueError(f"{size} bytes at byte {at}, but {len(data) - at} are left")
        if field == wanted and wire in wires:
            yield data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Decode a varint; return its value and the offset behind it."""
    number = 0
    for shift in range(0, 70, 7):
        if at == len(data):
            raise ValueError("it ends in the middle of a number")
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number & (2**64 - 1), at
    raise ValueError(f"a number without end at byte {at}")

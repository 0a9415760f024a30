"""tf.train.Example, the message inside a TFRecord, without TensorFlow or protobuf."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

VARINT, EIGHT_BYTES, COUNTED, FOUR_BYTES = 0, 1, 2, 5
BYTES, FLOATS, INTEGERS = 1, 2, 3
Feature = NDArray[np.uint8] | NDArray[np.float32] | NDArray[np.int64]


def parse_example(data: bytes) -> dict[str, Feature]:
    """Return the features of an example, or raise ValueError.

    A list of byte strings comes as all their bytes in a row, since an image may be one
    string or as many as it has bytes, each of length one.
    """
    features: dict[str, Feature] = {}
    for message in _fields(memoryview(data), 1, COUNTED):
        for entry in _fields(message, 1, COUNTED):
            name = b"".join(_fields(entry, 1, COUNTED)).decode("utf-8")
            features[name] = _feature(b"".join(_fields(entry, 2, COUNTED)))
    return features


def _feature(data: bytes) -> Feature:
    view = memoryview(data)
    for message in _fields(view, FLOATS, COUNTED):
        # Packed into one or each on its own: in both cases their bytes in a row.
        return np.frombuffer(b"".join(_fields(message, 1, COUNTED, FOUR_BYTES)), "<f4")
    for message in _fields(view, INTEGERS, COUNTED):
        return _integers(memoryview(b"".join(_fields(message, 1, COUNTED, VARINT))))
    return _strings(memoryview(b"".join(_fields(view, BYTES, COUNTED))))


def _strings(data: memoryview) -> NDArray[np.uint8]:
    # Strings of length one are three bytes each: field and wire type, the length, the byte.
    raw = np.frombuffer(data, np.uint8)
    if len(raw) % 3 == 0 and (raw[0::3] == 8 + COUNTED).all() and (raw[1::3] == 1).all():
        return raw[2::3]
    return np.frombuffer(b"".join(_fields(data, 1, COUNTED)), np.uint8)


def _integers(data: memoryview) -> NDArray[np.int64]:
    found, at = [], 0
    while at < len(data):
        number, at = _varint(data, at)
        found.append(number)
    # Negative numbers come as what they are modulo 2 ** 64.
    return np.array(found, np.uint64).astype(np.int64)


def _fields(data: memoryview, wanted: int, *wires: int) -> Iterator[memoryview]:
    """Walk over a message to the values of one field, as long as they have these types."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == VARINT:
            size = _varint(data, at)[1] - at
        elif wire == COUNTED:
            size, at = _varint(data, at)
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if wire == EIGHT_BYTES else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if size > len(data) - at:
            raise ValueError(f"{size} bytes at byte {at}, but {len(data) - at} are left")
        if field == wanted and wire in wires:
            yield data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number and the place behind it."""
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

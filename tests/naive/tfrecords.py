"""Write TFRecords and the examples in them, as plainly as the formats can be read."""

import gzip
import struct

import numpy as np


def crc32c(data):
    """One bit after another."""
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F63B78 if checksum & 1 else 0)
    return checksum ^ 0xFFFFFFFF


def masked(data):
    checksum = crc32c(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % 2**32


def framed(data):
    """One record: length, its checksum, bytes, their checksum."""
    length = struct.pack("<Q", len(data))
    checksums = (struct.pack("<I", masked(part)) for part in (length, data))
    return length + next(checksums) + data + next(checksums)


def write_records(path, messages, packed=True):
    """Write a file of records; as published, packed with gzip."""
    whole = b"".join(map(framed, messages))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(whole, 1) if packed else whole)
    return path


def example(single_bytes=True, **features):
    """A tf.train.Example of arrays: bytes of uint8, packed floats, packed integers."""
    entries = b""
    for name, array in features.items():
        if array.dtype == np.uint8 and single_bytes:
            listed = counted(1, b"".join(counted(1, bytes([b])) for b in array.tobytes()))
        elif array.dtype == np.uint8:
            listed = counted(1, counted(1, array.tobytes()))
        elif array.dtype.kind == "f":
            listed = counted(2, counted(1, array.astype("<f4").tobytes()))
        else:
            numbers = b"".join(varint(int(n) % 2**64) for n in array.ravel())
            listed = counted(3, counted(1, numbers))
        entries += counted(1, counted(1, name.encode()) + counted(2, listed))
    return counted(1, entries)


def counted(field, data):
    """A field of wire type 2: how many bytes, and these."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def varint(number):
    groups = []
    while number > 127:
        groups.append(number % 128 + 128)
        number //= 128
    return bytes([*groups, number])


def scene(image, masks, single_bytes=True, **features):
    """A published scene: image (H, W, 3), masks (entities, H, W) as 0 or 255, float lists."""
    masks = np.where(masks, 255, 0).astype(np.uint8)[..., None]
    lists = {name: np.asarray(values, np.float32) for name, values in features.items()}
    visibility = masks.any((1, 2, 3)).astype(np.float32)
    return example(
        single_bytes, image=image.astype(np.uint8), mask=masks, visibility=visibility, **lists
    )

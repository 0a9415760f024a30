"""CRC-32C (Castagnoli), fast enough for megabytes without a compiled package."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
BLOCK = 256
"""Bytes whose parts in the checksum are looked up at once."""
PLACES = np.arange(0, 256 * BLOCK, 256)
ROWS = 64
Words = NDArray[np.uint32]


def crc32c(data: bytes) -> int:
    """Return the checksum of these bytes.

    A checksum is linear: each byte has a part in it that depends on its value and on how
    many bytes follow, and the parts are added without carry. So blocks are looked up side by
    side, and then joined two by two.
    """
    if len(data) < 4:
        return _one_by_one(data)
    blocks = 1 << ((len(data) - 1) // BLOCK).bit_length()
    # Zeros in front have no part.
    padded = np.zeros(blocks * BLOCK, np.uint8)
    padded[-len(data) :] = np.frombuffer(data, np.uint8)
    # To begin with a checksum of ones is to turn round the first four bytes.
    first = len(padded) - len(data)
    padded[first : first + 4] ^= 255
    rows = padded.reshape(blocks, BLOCK)
    # Few at a time, so that what is looked up stays in the processor's cache.
    looked_up = (_tables().take(rows[at : at + ROWS] + PLACES) for at in range(0, blocks, ROWS))
    sums: Words = np.concatenate([np.bitwise_xor.reduce(part, axis=1) for part in looked_up])
    level = 0
    while len(sums) > 1:
        sums = _followed(sums[0::2], level) ^ sums[1::2]
        level += 1
    return int(sums[0]) ^ 0xFFFFFFFF


def _one_by_one(data: bytes) -> int:
    checksum, table = 0xFFFFFFFF, _byte_table().tolist()
    for byte in data:
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 255]
    return checksum ^ 0xFFFFFFFF


@cache
def _byte_table() -> Words:
    table: Words = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & 1, POLYNOMIAL, 0).astype(np.uint32)
    return table


@cache
def _tables() -> Words:
    """Return the part of each byte value in each place of a block, flat."""
    rows = [_byte_table()]
    while len(rows) < BLOCK:
        rows.append(rows[-1] >> 8 ^ _byte_table()[rows[-1] & 255])
    return np.concatenate(rows[::-1])


@cache
def _follow_tables(level: int) -> list[Words]:
    """Return what each byte of a checksum becomes when 2 ** level blocks of zeros follow."""
    values = np.arange(256, dtype=np.uint32)
    columns: list[Words] = [values << np.uint32(shift) for shift in (0, 8, 16, 24)]
    if level:
        return [_followed(_followed(column, level - 1), level - 1) for column in columns]
    for _ in range(BLOCK):
        columns = [column >> 8 ^ _byte_table()[column & 255] for column in columns]
    return columns


def _followed(sums: Words, level: int) -> Words:
    """Return what checksums become when 2 ** level blocks of zeros follow."""
    first, second, third, fourth = _follow_tables(level)
    return (
        first[sums & 255]
        ^ second[sums >> 8 & 255]
        ^ third[sums >> 16 & 255]
        ^ fourth[sums >> 24]
    )

"""TFRecord files, without TensorFlow: one record after another, each with its checksums."""

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celstack import CelstackError
from celstack.text import describe_error
from celstack_kit.formats.crc32c import crc32c
from celstack_kit.formats.read_errors import naming

HEAD = struct.Struct("<QI")
"""The length of a record, and the checksum of these eight bytes."""
TAIL = struct.Struct("<I")
LARGEST = 2**28
"""No record that we know of has more bytes; one that claims more is not read."""
GZIP = b"\x1f\x8b"


def records(path: Path) -> Iterator[bytes | CelstackError]:
    """Read the records of a file one by one, packed with gzip or not.

    A damaged record comes as the error that names file and record, counted from 1. If only
    its own bytes are wrong, the next one follows; where it is not known any more where
    records begin, or the file is cut off, the error is the last that comes.
    """
    with naming(path), path.open("rb") as raw:
        head = raw.read(HEAD.size)
        raw.seek(0)
        # A plain file may begin with the same two bytes, but not with a checksum that fits.
        packed = head.startswith(GZIP) and not _fits(head)
        if not head:
            raise CelstackError(f"{path}: it is empty")
        if not packed and not _fits(head):
            raise CelstackError(f"{path}: this is no file of TFRecords, packed or not")
        with _opened(raw, packed) as stream:
            yield from _records(path, stream)


@contextmanager
def _opened(raw: io.BufferedReader, packed: bool) -> Iterator[io.BufferedReader]:
    if not packed:
        yield raw
        return
    with gzip.GzipFile(fileobj=raw) as unpacked:
        yield io.BufferedReader(unpacked, 2**20)


def _records(path: Path, stream: io.BufferedReader) -> Iterator[bytes | CelstackError]:
    number = 0
    while True:
        number += 1
        name = f"{path}, record {number}"
        try:
            head = stream.read(HEAD.size)
            if not head:
                return
            if len(head) == HEAD.size and not _fits(head):
                yield CelstackError(f"{name}: damaged; the checksum of its length is wrong")
                return
            length = HEAD.unpack(head)[0] if len(head) == HEAD.size else 0
            if length > LARGEST:
                yield CelstackError(f"{name}: damaged; it claims {length} bytes")
                return
            data, tail = stream.read(length), stream.read(TAIL.size)
        except (OSError, EOFError, zlib.error) as error:
            yield CelstackError(f"{name}: damaged or unreadable ({describe_error(error)})")
            return
        if len(tail) < TAIL.size:
            yield CelstackError(f"{name}: the file ends in the middle of it")
            return
        if masked(data) == TAIL.unpack(tail)[0]:
            yield data
        else:
            yield CelstackError(f"{name}: damaged; the checksum of its bytes is wrong")


def _fits(head: bytes) -> bool:
    return len(head) == HEAD.size and masked(head[:8]) == HEAD.unpack(head)[1]


def masked(data: bytes) -> int:
    """Return the checksum as the format stores it: turned and shifted."""
    checksum = crc32c(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF

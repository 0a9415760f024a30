"""Read TFRecord files, verifying their CRC-32C checksums, without TensorFlow."""

import gzip
import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celstack import CelstackError
from celstack.text import describe_error
from celstack_kit.formats.read_errors import blame_file

with warnings.catch_warnings():
    # Without its C extension the package works, but warns that it is slower.
    warnings.simplefilter("ignore", RuntimeWarning)
    import google_crc32c

HEADER = struct.Struct("<QI")
"""Length of a record, and the checksum of the length's eight bytes."""
FOOTER = struct.Struct("<I")
MAX_RECORD_BYTES = 2**28
"""Larger records are refused; those of published files are far smaller."""
GZIP_MAGIC = b"\x1f\x8b"


def records(path: Path) -> Iterator[bytes | CelstackError]:
    """Yield the records of a file, which may be compressed with gzip.

    The damaged record is yielded as a CelstackError that names file and record, counted from 1.
    If only its data is damaged, the next record follows. If its length is damaged or the file
    is truncated, the error is the last item.
    """
    with blame_file(path), path.open("rb") as raw:
        head = raw.read(HEADER.size)
        raw.seek(0)
        # An uncompressed file may begin with the same bytes, but then its checksum is valid.
        packed = head.startswith(GZIP_MAGIC) and not _has_valid_header(head)
        if not head:
            raise CelstackError(f"{path}: it is empty")
        if not packed and not _has_valid_header(head):
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
            head = stream.read(HEADER.size)
            if not head:
                return
            if len(head) == HEADER.size and not _has_valid_header(head):
                yield CelstackError(f"{name}: damaged; the checksum of its length is wrong")
                return
            length = HEADER.unpack(head)[0] if len(head) == HEADER.size else 0
            if length > MAX_RECORD_BYTES:
                yield CelstackError(f"{name}: damaged; it claims {length} bytes")
                return
            data, tail = stream.read(length), stream.read(FOOTER.size)
        except (OSError, EOFError, zlib.error) as error:
            yield CelstackError(f"{name}: damaged or unreadable ({describe_error(error)})")
            return
        if len(tail) < FOOTER.size:
            yield CelstackError(f"{name}: the file ends in the middle of it")
            return
        if masked_crc32c(data) == FOOTER.unpack(tail)[0]:
            yield data
        else:
            yield CelstackError(f"{name}: damaged; the checksum of its bytes is wrong")


def _has_valid_header(head: bytes) -> bool:
    return len(head) == HEADER.size and masked_crc32c(head[:8]) == HEADER.unpack(head)[1]


def masked_crc32c(data: bytes) -> int:
    """Return the masked CRC-32C checksum that TFRecords store."""
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF

import gzip
import random
import struct
import tracemalloc

import pytest
from tfrecords import framed, masked, write_records

from celstack.errors import CelstackError
from celstack_kit.formats import tfrecord
from celstack_kit.formats.tfrecord import records

MESSAGES = [b"first", b"", b"third" * 1000]


def read(path):
    return [str(r) if isinstance(r, CelstackError) else r for r in records(path)]


def put(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_records_come_in_their_order(packed, tmp_path):
    assert read(write_records(tmp_path / "x", MESSAGES, packed)) == MESSAGES


def test_a_plain_file_may_begin_like_gzip(tmp_path):
    message = bytes(0x088B1F)

    path = put(tmp_path / "x", framed_quickly(message) + framed(b"next"))

    assert path.read_bytes().startswith(b"\x1f\x8b\x08")
    assert [len(message) for message in records(path)] == [0x088B1F, 4]


def framed_quickly(message):
    """Like ``framed``, which is slow for much."""
    head = struct.pack("<Q", len(message))
    checksums = (struct.pack("<I", tfrecord.masked_crc32c(part)) for part in (head, message))
    return head + next(checksums) + message + next(checksums)


def test_the_checksum_of_a_length_is_the_published_one():
    # The first bytes of a record of no bytes, as TensorFlow writes it.
    assert masked(bytes(8)) == struct.unpack("<I", b"\x29\x03\x98\x07")[0]


@pytest.mark.parametrize("packed", [True, False])
def test_a_record_with_damaged_bytes_is_named_and_the_next_one_follows(packed, tmp_path):
    path = write_records(tmp_path / "x", MESSAGES, packed=False)
    data = bytearray(path.read_bytes())
    data[13] ^= 1
    path.write_bytes(gzip.compress(data) if packed else data)

    named = f"{path}, record 1: damaged; the checksum of its bytes is wrong"
    assert read(path) == [named, *MESSAGES[1:]]


def test_a_wrong_checksum_is_named(tmp_path):
    path = write_records(tmp_path / "x", MESSAGES, packed=False)
    data = bytearray(path.read_bytes())
    data[-1] ^= 128

    found = read(put(path, data))

    assert found[:2] == MESSAGES[:2]
    assert found[2] == f"{path}, record 3: damaged; the checksum of its bytes is wrong"


def test_after_a_damaged_length_nothing_can_be_found(tmp_path):
    path = write_records(tmp_path / "x", MESSAGES, packed=False)
    data = bytearray(path.read_bytes())
    data[len(framed(MESSAGES[0]))] ^= 1

    found = read(put(path, data))

    assert found == [
        MESSAGES[0],
        f"{path}, record 2: damaged; the checksum of its length is wrong",
    ]


@pytest.mark.parametrize("packed", [True, False])
def test_a_hostile_length_takes_no_memory(packed, tmp_path):
    length = struct.pack("<Q", 2**60)
    hostile = length + struct.pack("<I", masked(length)) + b"abc"
    data = framed(b"first") + hostile
    path = put(tmp_path / "x", gzip.compress(data) if packed else data)

    tracemalloc.start()
    found = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found == [b"first", f"{path}, record 2: damaged; it claims {2**60} bytes"]
    assert peak < 2**24


@pytest.mark.parametrize("cut", [1, 4, 5, 4999, 5005, 5015])
def test_a_file_that_ends_in_a_record_is_said(cut, tmp_path):
    path = write_records(tmp_path / "x", MESSAGES, packed=False)

    found = read(put(path, path.read_bytes()[:-cut]))

    assert found == [*MESSAGES[:2], f"{path}, record 3: the file ends in the middle of it"]


def test_a_gzip_that_ends_too_soon_is_said(tmp_path):
    noise = random.Random(0).randbytes(3000)
    path = write_records(tmp_path / "x", [b"first", noise, noise])

    *_, last = read(put(path, path.read_bytes()[:-100]))

    assert last.startswith(f"{path}, record ")
    assert "EOFError" in last


@pytest.mark.parametrize("data", [b"no records here", b"abc", b"\x89PNG\r\n\x1a\n"])
def test_other_files_are_refused(data, tmp_path):
    path = put(tmp_path / "x", data)

    with pytest.raises(CelstackError) as refused:
        read(path)

    assert str(refused.value) == f"{path}: this is no file of TFRecords, packed or not"


@pytest.mark.parametrize("data", [b"\x1f\x8b", b"\x1f\x8b\x09" + bytes(30)])
def test_a_broken_head_of_gzip_is_said(data, tmp_path):
    path = put(tmp_path / "x", data)

    (said,) = read(path)

    assert said.startswith(f"{path}, record 1: damaged or unreadable (")


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(CelstackError, match="it is empty"):
        read(put(tmp_path / "x", b""))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CelstackError, match=r"x: damaged or unreadable"):
        read(tmp_path / "x")


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "x"
    message = framed_quickly(bytes(100_000))
    with gzip.open(path, "wb", 1) as file:
        for _ in range(300):
            file.write(message)

    tracemalloc.start()
    count = sum(len(record) for record in records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 300 * 100_000
    assert peak < 2**23


@pytest.mark.parametrize("packed", [True, False])
def test_any_damage_is_an_error_of_ours_or_a_record(packed, tmp_path):
    chance = random.Random(7)
    whole = write_records(tmp_path / "x", MESSAGES, packed).read_bytes()
    path = tmp_path / "damaged"
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 5)):
            data[chance.randrange(min(len(data), 60))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        try:
            found = read(path)
        except CelstackError:
            continue
        assert all(isinstance(r, str) or r in MESSAGES for r in found)

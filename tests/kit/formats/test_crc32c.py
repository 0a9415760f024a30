import pytest
import tfrecords
from hypothesis import given
from hypothesis import strategies as st

from celstack_kit.formats.crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        # RFC 3720, appendix B.4, and the check value of every catalogue of checksums.
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_checksums_that_are_published(data, checksum):
    assert crc32c(data) == checksum


@given(st.binary(max_size=1100))
def test_it_agrees_with_one_bit_after_another(data):
    assert crc32c(data) == tfrecords.crc32c(data)


@pytest.mark.parametrize("size", [255, 256, 257, 512, 513, 16_383, 16_384, 16_385, 40_000])
def test_blocks_are_joined_in_their_order(size):
    data = bytes((7 * index * index + index) % 251 for index in range(size))

    assert crc32c(data) == tfrecords.crc32c(data)

"""The checksums of TFRecords are masked CRC-32C, by whichever implementation is there."""

import subprocess
import sys

import pytest
import tfrecords
from hypothesis import given
from hypothesis import strategies as st

from celstack_kit.formats.tfrecord import masked_crc32c


def crc32c(data):
    """Undo the mask."""
    turned = (masked_crc32c(data) - 0xA282EAD8) % 2**32
    return (turned >> 17 | turned << 15) % 2**32


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
    assert masked_crc32c(data) == tfrecords.masked(data)


@pytest.mark.parametrize("size", [255, 256, 257, 512, 513, 16_383, 16_384, 16_385, 40_000])
def test_blocks_are_joined_in_their_order(size):
    data = bytes((7 * index * index + index) % 251 for index in range(size))

    assert masked_crc32c(data) == tfrecords.masked(data)


def test_without_its_c_extension_the_package_is_slower_but_silent():
    program = (
        "import sys; sys.modules['google_crc32c.cext'] = None\n"
        "from celstack_kit.formats.tfrecord import google_crc32c, masked_crc32c\n"
        "assert google_crc32c.implementation == 'python'\n"
        "print(masked_crc32c(b'123456789'))"
    )

    ran = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(ran.stdout) == tfrecords.masked(b"123456789")
    assert not ran.stderr

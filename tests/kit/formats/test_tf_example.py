from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tfrecords import counted, example, varint

from celstack_kit.formats.tf_example import parse_example


def one(name, feature):
    return counted(1, counted(1, counted(1, name) + counted(2, feature)))


@pytest.mark.parametrize("single_bytes", [True, False])
def test_each_kind_of_list_comes_as_an_array(single_bytes):
    arrays = {
        "image": np.array([0, 255, 7], np.uint8),
        "x": np.array([0.5, -1.0, 3.25], np.float32),
        "number": np.array([0, -1, 2**63 - 1, -(2**63), 300], np.int64),
    }

    parsed = parse_example(example(single_bytes, **arrays))

    assert set(parsed) == set(arrays)
    for name, array in arrays.items():
        assert parsed[name].dtype == array.dtype
        assert parsed[name].tolist() == array.tolist()


def test_strings_of_several_bytes_follow_each_other():
    strings = b"".join(counted(1, part) for part in (b"ab", b"", b"c"))

    assert bytes(parse_example(one(b"s", counted(1, strings)))["s"]) == b"abc"


def test_one_string_that_looks_like_strings_of_one_byte_is_one_string():
    alike = counted(1, b"x") * 43  # its own head is two bytes, so that the whole is not

    assert bytes(parse_example(one(b"s", counted(1, counted(1, alike))))["s"]) == alike


def test_numbers_need_not_be_packed():
    floats = b"".join(varint(1 << 3 | 5) + np.float32(x).tobytes() for x in (1.5, -2))
    integers = b"".join(varint(1 << 3) + varint(n) for n in (3, 2**64 - 1))

    assert parse_example(one(b"f", counted(2, floats)))["f"].tolist() == [1.5, -2]
    assert parse_example(one(b"i", counted(3, integers)))["i"].tolist() == [3, -1]


def test_unknown_fields_are_passed_over():
    unknown = varint(9 << 3) + varint(500) + varint(8 << 3 | 1) + bytes(8) + counted(7, b"?")
    feature = unknown + counted(3, unknown + counted(1, varint(4)))

    parsed = parse_example(unknown + one(b"n", feature) + unknown)

    assert parsed["n"].tolist() == [4]


def test_an_empty_feature_is_empty():
    assert len(parse_example(one(b"n", b""))["n"]) == 0


@pytest.mark.parametrize(
    "data",
    [
        varint(1 << 3 | 2) + varint(2**60),  # more bytes than there are
        varint(1 << 3 | 3),  # a group, long out of use
        b"\x80" * 11,  # a number without end
        b"\x0a",  # a field without a value
        one(b"\xff", b""),  # a name that is no text
        one(b"f", counted(2, counted(1, b"123"))),  # three bytes are no float
        one(b"i", counted(3, counted(1, b"\x80"))),  # an integer that does not end
    ],
)
def test_what_is_no_example_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        parse_example(data)


@settings(max_examples=300)
@given(st.data())
def test_damage_is_refused_or_read_but_nothing_else_happens(data):
    whole = bytearray(example(image=np.arange(6, dtype=np.uint8), x=np.zeros(2, np.float32)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))

    with suppress(ValueError):
        parse_example(bytes(whole[:cut]))

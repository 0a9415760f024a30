import struct

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from celstack_kit.formats.matlab import HEADER_BYTES, read_arrays

TABLE = {
    "bytes": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "one": np.array([[7]], np.uint8),
    "doubles": np.linspace(-1, 1, 6).reshape(3, 2),
    "whole": np.array([[1.0, 10.0]]),
    "signed": np.array([[-3, 300]], np.int16),
    "long": np.array([[-(2**40)]], np.int64),
    "single": np.array([[0.5]], np.float32),
    "none": np.zeros((0, 3), np.int32),
}


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def path(request, tmp_path):
    path = tmp_path / "arrays.mat"
    savemat(path, {**TABLE, "text": "no numbers"}, do_compression=request.param)
    return path


def test_arrays_are_those_that_scipy_reads(path):
    expected = loadmat(path)

    found = read_arrays(path, TABLE)

    assert found.keys() == TABLE.keys()
    for name, array in found.items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name], strict=True)


def test_only_what_is_asked_for_is_read(path):
    assert list(read_arrays(path, ["one"])) == ["one"]


def test_what_is_no_number_is_left_out(path):
    assert read_arrays(path, ["text"]) == {}


def test_complex_numbers_are_left_out(tmp_path):
    savemat(tmp_path / "arrays.mat", {"z": np.array([[1j]])})

    assert read_arrays(tmp_path / "arrays.mat", ["z"]) == {}


@pytest.mark.parametrize("length", [0, 100, HEADER_BYTES + 4, HEADER_BYTES + 40])
def test_a_file_that_is_cut_off_is_refused(length, path):
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(ValueError, match=r"no MATLAB file|too soon|ends before"):
        read_arrays(path, TABLE)


def test_files_of_version_4_are_refused(tmp_path):
    savemat(tmp_path / "arrays.mat", {"x": [[1.0]]}, format="4")

    with pytest.raises(ValueError, match="no MATLAB file of version 5"):
        read_arrays(tmp_path / "arrays.mat", ["x"])


def test_a_size_that_the_bytes_do_not_have_is_refused_before_memory_is_asked_for(tmp_path):
    path = tmp_path / "arrays.mat"
    savemat(path, {"x": np.zeros((3, 5), np.uint8)})
    sizes = struct.pack("<ii", 3, 5)
    assert path.read_bytes().count(sizes) == 1
    path.write_bytes(path.read_bytes().replace(sizes, struct.pack("<ii", 2**31 - 1, 2**31 - 1)))

    with pytest.raises(ValueError, match=r"x is \[2147483647, 2147483647\], which are not 15"):
        read_arrays(path, ["x"])


def test_files_that_begin_with_the_large_end_are_read(tmp_path):
    path = tmp_path / "arrays.mat"
    element = struct.pack(">IIII", 6, 8, 6, 0)  # flags: doubles
    element += struct.pack(">IIii", 5, 8, 1, 2) + struct.pack(">HH4s", 1, 1, b"x")
    element += struct.pack(">IIdd", 9, 16, 0.5, -2.0)
    whole = b" " * 124 + b"\x01\x00MI" + struct.pack(">II", 14, len(element)) + element
    path.write_bytes(whole)

    assert read_arrays(path, ["x"])["x"].tolist() == [[0.5, -2.0]]

import os

import numpy as np
import pytest
import torch
from published import digits
from scipy.io import savemat

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.svhn import Svhn


@pytest.fixture
def all_three(tmp_path):
    digits([1, 2, 10], "train", tmp_path, level=10)
    digits([3, 4], "test", tmp_path, level=20)
    return digits([5], "extra", tmp_path, level=30)


def refusal(root, split="train"):
    with pytest.raises(CelstackError) as refused:
        Svhn(root=root).count(split)
    return str(refused.value)


def test_it_keeps_the_promises_of_a_dataset(all_three):
    check_dataset(Svhn(root=all_three))


@pytest.mark.parametrize(
    ("split", "extra", "labels", "levels"),
    [
        ("train", True, [1, 2, 0, 3, 4, 5], [10, 11, 12, 20, 21, 30]),
        ("train", False, [1, 2, 0, 3, 4], [10, 11, 12, 20, 21]),
        ("labeled", True, [1, 2, 0, 3, 4], [10, 11, 12, 20, 21]),
        ("test", True, [3, 4], [20, 21]),
    ],
)
def test_what_each_split_holds(split, extra, labels, levels, all_three):
    dataset = Svhn(root=all_three, extra=extra)

    batch = dataset.read(split, range(dataset.count(split)))

    assert batch.label.tolist() == labels
    assert (batch.images[:, 0, 0, 0] * 255).round().tolist() == levels


def test_files_may_be_read_across_in_any_order(all_three):
    batch = Svhn(root=all_three).read("train", [5, 0, 4, 0])

    assert batch.label.tolist() == [5, 1, 4, 1]


def test_rows_columns_and_colors_are_not_mixed_up(all_three):
    image = Svhn(root=all_three).read("test", [0]).images[0]

    assert (image == 1).nonzero().tolist() == [[1, 2, 30]]  # green, third row, on the right


@pytest.mark.parametrize("split", ["train", "labeled", "test"])
def test_one_file_is_enough_and_the_log_says_what_is_missing(split, tmp_path, caplog):
    dataset = Svhn(root=digits([3, 4], "test", tmp_path))

    assert dataset.count(split) == 2
    missing = "svhn: train_32x32.mat and extra_32x32.mat not found; continuing without"
    assert missing in caplog.messages
    assert any("2 images in" in m and "26032 were published" in m for m in caplog.messages)


def test_a_split_without_its_files_is_said(tmp_path):
    said = refusal(digits([3], "train", tmp_path), "test")

    assert said.startswith(f"svhn: no test_32x32.mat in {tmp_path};")


def test_data_is_not_looked_for_before_it_is_used(tmp_path):
    assert Svhn(root=tmp_path).image_shape == (3, 32, 32)

    wanted = "train_32x32.mat or test_32x32.mat or extra_32x32.mat"
    assert refusal(tmp_path).startswith(f"svhn: no {wanted} in {tmp_path};")


@pytest.mark.parametrize("keep", [0, 60, 140, 250, -5])
def test_a_truncated_file_is_named(keep, tmp_path):
    file = digits(list(range(1, 11)), "test", tmp_path) / "test_32x32.mat"
    file.write_bytes(file.read_bytes()[:keep])

    assert refusal(tmp_path).startswith(f"{file}: ")


IMAGES = np.zeros((32, 32, 3, 2), np.uint8)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"y": [1, 2]}, "no array of numbers called X in it"),
        ({"X": IMAGES}, "no array of numbers called y in it"),
        ({"X": {"a": 1}, "y": [1]}, "no array of numbers called X in it"),
        ({"X": np.array([{}, "a"], object), "y": [1]}, "no array of numbers called X in it"),
        ({"X": IMAGES, "y": [1]}, "X is uint8 (32, 32, 3, 2), not uint8 (32, 32, 3, 1)"),
        ({"X": IMAGES / 2, "y": [1, 2]}, "X is float64 (32, 32, 3, 2), not uint8"),
        ({"X": IMAGES.T, "y": [1, 2]}, "X is uint8 (2, 3, 32, 32), not uint8"),
        ({"X": IMAGES, "y": [0, 1]}, "y must be 1 to 10, where 10 is the digit 0"),
        ({"X": IMAGES, "y": [1, 11]}, "y must be 1 to 10, where 10 is the digit 0"),
    ],
)
def test_another_layout_is_said(columns, text, tmp_path):
    savemat(tmp_path / "test_32x32.mat", columns)

    said = refusal(tmp_path)

    assert said.startswith(f"{tmp_path / 'test_32x32.mat'}: ")
    assert text in said


@pytest.mark.skipif("CELSTACK_DATA" not in os.environ, reason="CELSTACK_DATA is not set")
def test_the_official_file():
    dataset = Svhn()

    batch = dataset.read("test", range(0, 26_032, 4))

    assert dataset.count("test") == 26_032
    assert torch.equal(batch.label.unique(), torch.arange(10))
    assert batch.label[0] == 5
    check_dataset(dataset)

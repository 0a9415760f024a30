import os
import pickle

import pytest
import torch
from published import SIGNS, as_folder, as_zip, ppm, sign_files

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.gtsrb8 import Gtsrb8

ARCHIVE = "GTSRB_Final_Training_Images.zip"


def refusal(root, **options):
    with pytest.raises(CelstackError) as refused:
        Gtsrb8(root=root, **options).count("train")
    return str(refused.value)


@pytest.mark.parametrize("write", [as_zip, as_folder])
def test_it_keeps_the_promises_of_a_dataset(write, tmp_path):
    check_dataset(Gtsrb8(root=write(sign_files(), tmp_path)))


@pytest.mark.parametrize("write", [as_zip, as_folder])
def test_labels_count_the_eight_classes_in_order(write, tmp_path):
    dataset = Gtsrb8(root=write(sign_files(classes=range(43)), tmp_path), size=(8, 9))

    batch = dataset.read("train", range(16))

    assert dataset.count("train") == 16
    assert batch.label.tolist() == [label for label in range(8) for _ in range(2)]
    levels = (batch.images * 255).round().int()
    numbers = torch.tensor([3, 7, 9, 11, 17, 18, 25, 35]).repeat_interleave(2)
    assert torch.equal(levels, (5 * numbers).int().view(16, 1, 1, 1).expand(16, 3, 8, 9))


def test_colors_and_corners_stay_where_they_are(tmp_path):
    files = sign_files(1)
    pixels = torch.zeros(28, 28, 3)
    pixels[0, 27] = torch.tensor([250.0, 100.0, 50.0])
    files[f"{SIGNS}/00003/00000_00000.ppm"] = ppm(pixels.numpy())

    image = Gtsrb8(root=as_zip(files, tmp_path)).read("train", [0]).images[0]

    assert (image[:, 0, 27] * 255).round().tolist() == [250, 100, 50]
    assert image.count_nonzero() == 3


def test_it_is_called_as_recipes_call_it():
    assert Gtsrb8.name == "gtsrb8"
    assert len(Gtsrb8.class_names) == 8


def test_data_is_not_looked_for_before_it_is_used(tmp_path):
    dataset = Gtsrb8(root=tmp_path / "nowhere")

    assert dataset.image_shape == (3, 28, 28)
    assert f"no {ARCHIVE} or {SIGNS} in {tmp_path / 'nowhere'}" in refusal(dataset.root)


def test_a_count_that_was_not_published_is_logged(tmp_path, caplog):
    Gtsrb8(root=as_zip(sign_files(), tmp_path)).count("train")

    (message,) = caplog.messages
    start = "gtsrb8: not the published number of images: 2 of 1410 in class 3, "
    assert message.startswith(start)


def test_other_members_are_not_looked_at(tmp_path):
    files = {"../../evil.ppm": b"", f"{SIGNS}/00003/evil.txt": b"", **sign_files()}

    assert Gtsrb8(root=as_zip(files, tmp_path)).count("train") == 16


@pytest.mark.parametrize("keep", [10, 1000])
def test_a_truncated_archive_is_named(keep, tmp_path):
    archive = as_zip(sign_files(), tmp_path) / ARCHIVE
    archive.write_bytes(archive.read_bytes()[:keep])

    assert refusal(tmp_path).startswith(f"{archive}: damaged or unreadable (BadZipFile")


@pytest.mark.parametrize("write", [as_zip, as_folder])
@pytest.mark.parametrize("data", [b"", b"P6\n9 9\n255\nxx", b"hello"])
def test_a_broken_image_is_named_or_skipped(write, data, tmp_path, caplog):
    name = f"{SIGNS}/00007/00000_00001.ppm"
    root = write({**sign_files(), name: data}, tmp_path)

    said = refusal(root)
    dataset = Gtsrb8(root=root, skip_broken=True)

    assert f"{name}: damaged or unreadable" in said
    assert dataset.count("train") == 15
    assert dataset.read("train", range(15)).label.bincount().tolist() == [2, 1, *[2] * 6]
    assert f"gtsrb8: skipped 1 of 16; first {said}" in caplog.messages


def test_changed_bytes_in_the_archive_are_noticed(tmp_path):
    noise = torch.randint(256, (30, 30, 3), generator=torch.Generator().manual_seed(0)).numpy()
    name = f"{SIGNS}/00003/00000_00000.ppm"
    archive = as_zip({**sign_files(), name: ppm(noise)}, tmp_path) / ARCHIVE
    data = bytearray(archive.read_bytes())
    data[1000] ^= 255
    archive.write_bytes(data)

    assert f"{archive}: {name}: damaged or unreadable" in refusal(tmp_path)


def test_a_missing_image_is_said(tmp_path):
    files = sign_files()
    del files[f"{SIGNS}/00009/00000_00001.ppm"]

    said = refusal(as_folder(files, tmp_path))

    assert "GT-00009.csv: lists 2 images, but 1 are there; see 00009/00000_00001.ppm" in said


def test_another_layout_is_said(tmp_path):
    root = as_zip({"Train/3/00003_00000_00000.png": b""}, tmp_path)

    assert f"{SIGNS}/00003/GT-00003.csv: missing; is this the official layout?" in refusal(root)


def test_an_image_of_absurd_size_is_not_unpacked(tmp_path):
    name = f"{SIGNS}/00003/00000_00000.ppm"
    root = as_zip({**sign_files(), name: bytes(2**26 + 1)}, tmp_path)

    assert f"{name}: 67108865 bytes, more than the limit of 67108864" in refusal(root)


@pytest.mark.skipif("CELSTACK_DATA" not in os.environ, reason="CELSTACK_DATA is not set")
def test_the_official_archive(caplog):
    dataset = Gtsrb8()

    labels = dataset.read("train", range(10_650)).label

    assert dataset.count("train") == 10_650
    assert labels.bincount().tolist() == [1410, 1440, 1470, 1320, 1110, 1200, 1500, 1200]
    assert caplog.messages == []
    check_dataset(dataset)
    assert len(pickle.dumps(dataset)) < 30e6

import io
import os
import tarfile

import pytest
import torch
from published import HORSES, as_folder, as_tar, horse_files

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.weizmann_horse import WeizmannHorse

ARCHIVE = "weizmann_horse_db.tar"


def refusal(root):
    with pytest.raises(CelstackError) as refused:
        WeizmannHorse(root=root).count("train")
    return str(refused.value)


@pytest.mark.parametrize("write", [as_tar, as_folder])
def test_it_keeps_the_promises_of_a_dataset(write, tmp_path):
    check_dataset(WeizmannHorse(root=write(horse_files(), tmp_path), size=(16, 32)))


@pytest.mark.parametrize("write", [as_tar, as_folder])
def test_images_and_silhouettes_are_squashed_alike(write, tmp_path):
    batch = WeizmannHorse(root=write(horse_files(), tmp_path)).read("train", [2])

    assert batch.images.shape == (1, 3, 128, 128)
    left = (torch.arange(128) < 64).expand(1, 128, 128)
    assert torch.equal(batch.instances, left.long())
    assert torch.equal(batch.classes, left.long())
    red, blue = batch.images[:, 0], batch.images[:, 2]
    away = (torch.arange(128) - 63.5).abs() > 12  # JPEG mixes colors near the edge
    assert torch.equal((red > 0.9)[..., away], left[..., away])
    assert torch.equal((blue < 0.1)[..., away], left[..., away])


def test_it_is_called_as_recipes_call_it():
    assert WeizmannHorse.name == "weizmann_horse"
    assert WeizmannHorse.class_names == ("horse",)


def test_data_is_not_looked_for_before_it_is_used(tmp_path):
    assert WeizmannHorse(root=tmp_path, size=(5, 7)).image_shape == (3, 5, 7)
    assert f"no {ARCHIVE} or {HORSES} in {tmp_path}" in refusal(tmp_path)


def test_another_number_of_pairs_is_logged(tmp_path, caplog):
    WeizmannHorse(root=as_tar(horse_files(), tmp_path)).count("train")

    assert caplog.messages == ["weizmann_horse: 3 pairs, but 327 or 328 are known"]


@pytest.mark.parametrize("kind", ["rgb", "figure_ground"])
def test_an_image_without_its_pair_is_said(kind, tmp_path):
    files = horse_files()
    del files[f"{HORSES}/{kind}/horse002.jpg"]

    assert refusal(as_folder(files, tmp_path)).endswith("silhouettes; see horse002.jpg")


def test_another_layout_is_said(tmp_path):
    root = as_tar({"horses/001.jpg": b""}, tmp_path)

    assert "is this the official layout?" in refusal(root)


@pytest.mark.parametrize("keep", [0, 100, 700, 2000])
def test_a_truncated_archive_is_named(keep, tmp_path):
    archive = as_tar(horse_files(), tmp_path) / ARCHIVE
    archive.write_bytes(archive.read_bytes()[:keep])

    assert refusal(tmp_path).startswith(f"{archive}: ")


@pytest.mark.parametrize("write", [as_tar, as_folder])
@pytest.mark.parametrize("kind", ["rgb", "figure_ground"])
def test_a_truncated_image_is_named_or_skipped(write, kind, tmp_path, caplog):
    files = horse_files()
    name = f"{HORSES}/{kind}/horse002.jpg"
    files[name] = files[name][: len(files[name]) * 3 // 4]
    root = write(files, tmp_path)

    said = refusal(root)

    assert f"{name}: damaged or unreadable" in said
    assert WeizmannHorse(root=root, skip_broken=True).count("train") == 2
    assert f"weizmann_horse: skipped 1 of 3; first {said}" in caplog.messages


def test_a_link_in_the_archive_is_not_followed(tmp_path):
    files = horse_files()
    del files[f"{HORSES}/rgb/horse002.jpg"]
    archive = as_tar(files, tmp_path) / ARCHIVE
    with tarfile.open(archive, "a") as tar:
        link = tarfile.TarInfo(f"{HORSES}/rgb/horse002.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "horse001.jpg"
        tar.addfile(link, io.BytesIO())

    assert refusal(tmp_path).endswith("2 images, but 3 silhouettes; see horse002.jpg")


@pytest.mark.skipif("CELSTACK_DATA" not in os.environ, reason="CELSTACK_DATA is not set")
def test_the_real_archive(caplog):
    dataset = WeizmannHorse()

    batch = dataset.read("train", range(328))

    assert dataset.count("train") == 328
    shares = batch.instances.float().mean((1, 2))
    assert 0 < shares.min() < shares.max() < 0.9
    assert caplog.messages == []
    check_dataset(dataset)

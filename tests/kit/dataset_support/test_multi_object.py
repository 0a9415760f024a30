"""What all datasets of generated or published scenes share, seen on one of them."""

import os
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from tfrecords import framed, scene, write_records

from celstack.data.loader import shuffled_batches
from celstack.errors import CelstackError
from celstack_kit.datasets.multi_dsprites import MultiDsprites

RECORDS = "multi_dsprites_colored_on_grayscale.tfrecords"


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CELSTACK_DATA", raising=False)
    return tmp_path


def message(level):
    """The scene of two objects whose ground has this level."""
    masks = np.zeros((6, 64, 64), bool)
    masks[1, 5:9], masks[2, 20:30] = True, True
    masks[0] = ~masks[1:].any(0)
    return scene(np.full((64, 64, 3), level), masks, False, shape=[0, 1, 3, 0, 0, 0])


def levels(dataset, split="train"):
    images = dataset.read(split, range(dataset.count(split))).images
    return (images[:, 0, 0, 0] * 255).round().int().tolist()


@pytest.fixture
def six(home):
    """The file of six records, whose levels count from 0."""
    return write_records(home / "six" / RECORDS, [message(level) for level in range(6)])


def opened(root, count=3, test_count=2, **options):
    return MultiDsprites(count, test_count, source="records", root=root, **options)


def refusal(dataset):
    with pytest.raises(CelstackError) as refused:
        dataset.count("train")
    return str(refused.value)


def test_held_out_images_come_after_those_to_learn_from(six):
    dataset = opened(six.parent)

    assert (levels(dataset, "train"), levels(dataset, "test")) == ([0, 1, 2], [3, 4])


def test_of_too_few_images_the_last_are_held_out(six, caplog):
    dataset = opened(six.parent, count=10)

    assert (levels(dataset, "train"), levels(dataset, "test")) == ([0, 1, 2, 3], [4, 5])
    said = f"6 images in {six}: 4 for training, the last 2 for testing"
    assert caplog.messages == [f"multi_dsprites: {said}"]


def test_a_file_with_nothing_to_learn_from_is_said(six):
    said = refusal(opened(six.parent, test_count=6))

    assert said == f"{six}: 6 images; test_count = 6 leaves none for training"


def test_root_may_be_the_file_or_a_folder_above(six, home):
    six.rename(home / "other.name")
    (home / "multi_dsprites").mkdir()
    write_records(home / "multi_dsprites" / RECORDS, [message(9)] * 5)

    assert levels(opened(home / "other.name")) == [0, 1, 2]
    assert levels(opened(home)) == [9, 9, 9]


def test_files_are_found_where_the_environment_says(six, monkeypatch):
    monkeypatch.setenv("CELSTACK_DATA", str(six.parent))

    assert levels(opened(root=None)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("records", f"{RECORDS} or multi_dsprites/{RECORDS}"),
        ("folder", "multi_dsprites/images"),
    ],
)
def test_what_is_missing_is_said_with_what_can_be_done(source, wanted, home):
    said = refusal(MultiDsprites(source=source))

    assert said.startswith(f"multi_dsprites: no {wanted} in {home / 'cache' / 'celstack'}; ")
    assert 'source = "generated" makes such images instead' in said


def test_a_changed_file_is_read_again(six):
    before = levels(opened(six.parent))

    write_records(six, [message(level) for level in range(20, 30)])

    assert before == [0, 1, 2]
    assert levels(opened(six.parent)) == [20, 21, 22]


def test_a_file_is_converted_once(six):
    levels(opened(six.parent))
    stamp = six.stat()
    six.write_bytes(bytes(stamp.st_size))
    os.utime(six, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert levels(opened(six.parent)) == [0, 1, 2]


@pytest.mark.parametrize("damage", ["bytes", "message"])
def test_a_broken_record_is_named_or_skipped_and_counted(damage, six, caplog):
    whole = bytearray(b"".join(framed(message(level)) for level in range(6)))
    size = len(framed(message(0)))
    if damage == "bytes":
        whole[size + 40] ^= 1
    else:
        whole[size : 2 * size] = framed(b"no example")
    six.write_bytes(whole)

    said = refusal(opened(six.parent))
    dataset = opened(six.parent, skip_broken=True)

    assert said.startswith(f"{six}, record 2: damaged")
    assert (levels(dataset, "train"), levels(dataset, "test")) == ([0, 2, 3], [4, 5])
    assert caplog.messages == [f"multi_dsprites: skipped 1 of 6; first {said}"]


def test_of_a_truncated_file_what_is_whole_can_be_had(six, caplog):
    whole = b"".join(framed(message(level)) for level in range(6))
    six.write_bytes(whole[:-10])

    assert levels(opened(six.parent)) == [0, 1, 2]  # the damage lies behind what is read
    said = refusal(opened(six.parent, count=4))
    dataset = opened(six.parent, count=4, skip_broken=True)

    assert said == f"{six}, record 6: the file ends in the middle of it"
    assert levels(dataset) == [0, 1, 2]
    assert caplog.messages[0] == f"multi_dsprites: skipped 1 of 6; first {said}"


def test_a_file_in_which_all_is_broken_is_an_error(six):
    six.write_bytes(framed(b"no example") * 3)

    assert refusal(opened(six.parent, skip_broken=True)).startswith(f"{six}, record 1: damaged")


def test_a_file_in_which_nothing_is_ours_is_an_error(six):
    assert refusal(opened(six.parent, objects=4)) == f"{six}: no usable images in it"


def write_folder(folder, count):
    for index in range(count):
        ids = np.zeros((64, 64), np.uint8)
        ids[:4], ids[30:40] = 1, 2
        image = np.full((64, 64, 3), index, np.uint8)
        for kind, pixels in (("images", image), ("masks", ids), ("sem_masks", ids + (ids > 0))):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / kind / f"{index}.png")
    return folder


@pytest.mark.parametrize("inside", ["", "multi_dsprites"])
def test_folders_are_read_in_the_same_way(inside, home):
    write_folder(home / "data" / inside, 6)
    dataset = MultiDsprites(3, 2, source="folder", root=home / "data")

    assert (levels(dataset, "train"), levels(dataset, "test")) == ([0, 1, 2], [3, 4])
    batch = dataset.read("train", [0])
    assert batch.classes.unique().tolist() == [0, 2, 3]
    assert batch.instances.unique().tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["images", "masks", "sem_masks"])
def test_a_file_that_was_mended_in_its_place_is_read_again(kind, home):
    folder = write_folder(home / "data", 6)
    before = MultiDsprites(3, 2, source="folder", root=folder)._published["train"].folder
    file = folder / kind / "1.png"
    above = (folder / kind).stat().st_mtime_ns

    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(1, 1))

    assert (folder / kind).stat().st_mtime_ns == above
    after = MultiDsprites(3, 2, source="folder", root=folder)._published["train"].folder
    assert before != after


def test_a_root_is_refused_where_nothing_is_read(home):
    with pytest.raises(CelstackError, match=r'^root: only for source = "records" or '):
        MultiDsprites(root=home)


def test_an_image_of_another_size_is_named(home):
    folder = write_folder(home / "data", 6)
    for kind in ("images", "masks", "sem_masks"):
        Image.new("RGB" if kind == "images" else "L", (64, 60)).save(folder / kind / "1.png")

    said = refusal(MultiDsprites(3, 2, source="folder", root=folder))

    assert said == f"{folder / 'images' / '1.png'}: it is 60 x 64, not (64, 64)"


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_change_nothing(workers):
    dataset = MultiDsprites(count=40, test_count=1, seed=5)
    batches = shuffled_batches(dataset, "train", batch_size=16, seed=1, workers=workers)

    first = next(batches)
    batches.close()

    alone = MultiDsprites(count=40, test_count=1, seed=5)
    assert torch.equal(next(shuffled_batches(alone, "train", 16, seed=1)).images, first.images)


def test_a_dataset_that_is_in_use_can_be_pickled_without_its_images():
    dataset = MultiDsprites(count=40, test_count=1)
    dataset.count("train")

    assert len(pickle.dumps(dataset)) < 2000

import errno
import multiprocessing
import os
import pickle
import threading
import time

import numpy as np
import pytest
import torch
from filelock import FileLock

from celstack.errors import CelstackError
from celstack_kit.dataset_support import cache_writer as writer
from celstack_kit.dataset_support import image_cache as cached
from celstack_kit.dataset_support.image_cache import CachedImages, cached_images


@pytest.fixture
def home(monkeypatch, tmp_path):
    """The cache of its own; what is kept is in the folder that is returned."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "celstack" / "generated"


class Maker:
    """Makes images in two parts, whose pixels are their numbers, and counts how often."""

    def __init__(self, count=5, level=0):
        self.count, self.level, self.times = count, level, 0

    def __call__(self, out):
        self.times += 1
        for start, stop in ((0, 2), (2, self.count)):
            numbers = np.arange(start, stop, dtype=np.uint8)[:, None, None]
            labels = np.tile(numbers, (1, 3, 4))
            out.add(np.tile(labels[..., None] + np.uint8(self.level), 3), labels, labels + 1)


def folders(home):
    return sorted(path for path in home.iterdir() if path.is_dir())


def test_images_and_labels_come_back_in_the_order_that_is_asked_for(home):
    kept = cached_images("numbers", {}, Maker(level=10), total=5)

    batch = kept.read([4, 0, 4])

    assert len(kept) == 5
    assert batch.images.shape == (3, 3, 3, 4)
    assert batch.images.dtype == torch.float32
    assert (batch.images[:, 0, 0, 0] * 255).round().tolist() == [14, 10, 14]
    assert batch.instances.dtype == batch.classes.dtype == torch.int64
    assert batch.instances[:, 2, 3].tolist() == [4, 0, 4]
    assert batch.classes[:, 2, 3].tolist() == [5, 1, 5]


def test_what_was_made_once_is_not_made_again(home):
    make = Maker()

    first, again = (cached_images("numbers", {"seed": 1}, make, total=5) for _ in range(2))

    assert make.times == 1
    assert torch.equal(first.read([3]).images, again.read([3]).images)


@pytest.mark.parametrize("other", [("numbers", {"seed": 2}), ("others", {"seed": 1})])
def test_other_facts_and_other_names_have_other_folders(other, home):
    first = cached_images("numbers", {"seed": 1}, Maker(level=0), total=5)

    second = cached_images(*other, Maker(level=50), total=5)

    assert first.folder != second.folder
    assert not torch.equal(first.read([3]).images, second.read([3]).images)


def test_the_order_in_which_facts_are_said_is_irrelevant(home):
    make = Maker()

    for facts in ({"seed": 1, "side": 2}, {"side": 2, "seed": 1}):
        cached_images("numbers", facts, make, total=5)

    assert make.times == 1


def test_it_lies_on_disk_and_is_opened_by_copies(home):
    kept = cached_images("numbers", {}, Maker(), total=5)

    copied = pickle.loads(pickle.dumps(kept))
    part = pickle.loads(pickle.dumps(kept.subset(1, 3)))

    assert isinstance(copied.images, np.memmap)
    assert len(pickle.dumps(kept)) < 500
    assert len(part) == 2
    assert torch.equal(part.read([0, 1]).instances, kept.read([1, 2]).instances)


def test_files_say_what_they_are(home):
    folder = cached_images("numbers", {"seed": 3}, Maker(), total=5).folder

    assert sorted(path.name for path in folder.iterdir()) == [
        "classes.npy",
        "facts.json",
        "images.npy",
        "instances.npy",
    ]
    assert np.load(folder / "images.npy").shape == (5, 3, 4, 3)
    assert '"seed": 3' in (folder / "facts.json").read_text()


def test_what_fails_while_it_is_made_leaves_nothing(home):
    def make(out):
        Maker()(out)
        raise CelstackError("record 7 is damaged")

    with pytest.raises(CelstackError, match="record 7"):
        cached_images("numbers", {}, make, total=5)

    assert folders(home) == []
    assert len(cached_images("numbers", {}, Maker(), total=5)) == 5


def test_what_a_killed_process_left_is_not_used(home):
    whole = cached_images("numbers", {}, Maker(), total=5).folder
    whole.rename(whole.with_name(whole.name + ".part"))
    make = Maker()

    cached_images("numbers", {}, make, total=5)

    assert make.times == 1
    assert folders(home) == [whole]


def truncate(folder):
    data = (folder / "images.npy").read_bytes()
    (folder / "images.npy").write_bytes(data[:-1])


def misplace(folder):
    (folder / "classes.npy").unlink()


def shorten(folder):
    np.save(folder / "instances.npy", np.zeros((4, 3, 4), np.uint8))


def confuse(folder):
    np.save(folder / "images.npy", np.array([None]), allow_pickle=True)


@pytest.mark.parametrize("damage", [truncate, misplace, shorten, confuse])
def test_what_is_damaged_is_said_and_made_again(damage, home, caplog):
    folder = cached_images("numbers", {}, Maker(), total=5).folder
    damage(folder)
    make = Maker()

    with pytest.raises(CelstackError, match="damaged"):
        CachedImages.open(folder)
    again = cached_images("numbers", {}, make, total=5)

    assert make.times == 1
    assert len(again.read(range(5))) == 5
    assert caplog.messages == [f"{folder}: damaged, so it is made again"]
    assert len(CachedImages.open(folder)) == 5


def test_a_cache_that_cannot_be_written_is_said_once(home, caplog):
    home.parent.write_text("a file where the folder should be")

    kept = cached_images("numbers", {}, Maker(), total=5)

    (said,) = caplog.messages
    assert said.startswith(f"numbers: {home} cannot be written (")
    assert said.endswith("images are kept in memory")
    assert kept.read([4]).instances[0, 0, 0] == 4
    copied = pickle.loads(pickle.dumps(kept.subset(1, 3)))
    assert copied.read([0, 1]).instances[:, 0, 0].tolist() == [1, 2]


def test_a_full_disk_is_said_and_leaves_nothing(home, caplog, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer, "_write_header", full)

    kept = cached_images("numbers", {}, Maker(), total=5)

    assert "No space left on device" in caplog.text
    assert len(kept) == 5
    assert folders(home) == []


def test_errors_of_whoever_makes_images_are_not_the_cache_s_fault(home):
    def make(_):
        raise OSError("the source cannot be read")

    with pytest.raises(OSError, match="the source"):
        cached_images("numbers", {}, make, total=5)


def test_that_another_process_is_waited_for_is_said(home, caplog, monkeypatch):
    folder = cached_images("numbers", {}, Maker(), total=5).folder
    hidden = folder.rename(folder.with_name("hidden"))
    monkeypatch.setattr(cached, "QUIET_SECONDS", 0.01)
    begun = threading.Event()

    def make():
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            begun.set()
            while not caplog.messages:
                time.sleep(0.01)
            hidden.rename(folder)

    other = threading.Thread(target=make)
    other.start()
    begun.wait()
    kept = cached_images("numbers", {}, Maker(level=9), total=5)
    other.join()

    said = "numbers: another process is making these images; waiting for it"
    assert caplog.messages == [said]
    assert kept.read([4]).instances[0, 0, 0] == 4


def slowly(out):
    with (out.folder.parent / "times").open("a") as times:
        times.write("x")
    Maker()(out)
    time.sleep(0.3)


def in_a_process(barrier, results):
    barrier.wait()
    results.put(len(cached_images("numbers", {}, slowly, total=5)))


def test_of_two_processes_one_makes_and_both_read(home):
    forked = multiprocessing.get_context("fork")
    barrier, results = forked.Barrier(2), forked.Queue()
    both = [forked.Process(target=in_a_process, args=(barrier, results)) for _ in range(2)]
    for process in both:
        process.start()

    assert [results.get(timeout=60) for _ in both] == [5, 5]
    for process in both:
        process.join()
    assert (home / "times").read_text() == "x"

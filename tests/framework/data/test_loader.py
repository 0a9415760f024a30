from itertools import chain, islice

import pytest
import torch

from celstack.data.loader import batch_size_at, epoch_order, ordered_batches, shuffled_batches
from celstack.interfaces.dataset import Batch, Dataset
from celstack.training.distributed.process_group import ProcessGroup


class Numbers(Dataset):
    """Each image is one pixel that holds its index; test images count from 100."""

    image_shape = (1, 1, 1)

    def count(self, split):
        return {"train": 5, "test": 3}[split]

    def read(self, split, indices):
        first = {"train": 0, "test": 100}[split]
        return Batch(torch.tensor([float(first + i) for i in indices]).view(-1, 1, 1, 1))


def numbers(batches):
    return [[int(image) for image in batch.images] for batch in batches]


def joined(batches):
    return list(chain.from_iterable(batches))


def read_shuffled(batches, seed=0, batch_size=2, workers=0):
    return numbers(
        islice(shuffled_batches(Numbers(), "train", batch_size, seed, workers), batches)
    )


def test_in_order_means_in_order():
    assert numbers(ordered_batches(Numbers(), "train", 5, 2)) == [[0, 1], [2, 3], [4]]


def test_only_so_many_are_read():
    assert numbers(ordered_batches(Numbers(), "train", 3, 2)) == [[0, 1], [2]]


def test_no_more_are_read_than_there_are():
    assert numbers(ordered_batches(Numbers(), "test", 99, 2)) == [[100, 101], [102]]


def test_an_epoch_has_every_image_once_and_its_last_batch_may_be_smaller():
    epoch = read_shuffled(3)

    assert [len(batch) for batch in epoch] == [2, 2, 1]
    assert sorted(joined(epoch)) == [0, 1, 2, 3, 4]


def test_after_an_epoch_comes_another_in_its_own_order():
    batches = read_shuffled(6)

    assert sorted(joined(batches[3:])) == [0, 1, 2, 3, 4]
    assert joined(batches[3:]) != joined(batches[:3])


def test_the_seed_decides_the_order():
    assert read_shuffled(9, seed=3) == read_shuffled(9, seed=3)
    assert read_shuffled(9, seed=3) != read_shuffled(9, seed=4)


def test_the_batch_size_does_not_change_the_order():
    assert joined(read_shuffled(5, batch_size=1)) == joined(read_shuffled(3))


def test_the_order_is_that_of_the_epochs():
    orders = [epoch_order(5, seed=7, epoch=epoch).tolist() for epoch in (0, 1)]

    assert joined(read_shuffled(6, seed=7)) == joined(orders)


# Forking a process that has used threads makes newer Pythons warn.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_do_not_change_the_order():
    assert read_shuffled(4, workers=1) == read_shuffled(4)


def test_the_random_state_is_left_alone():
    before = torch.get_rng_state()

    read_shuffled(4)

    assert torch.equal(torch.get_rng_state(), before)


def test_the_random_state_does_not_change_the_order():
    first = read_shuffled(4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12345)

        assert read_shuffled(4) == first


def test_epochs_of_neighbouring_seeds_do_not_repeat_one_another():
    orders = {
        tuple(epoch_order(50, seed, epoch).tolist()) for seed in range(8) for epoch in range(25)
    }

    assert len(orders) == 8 * 25


@pytest.mark.parametrize("seed", [0, 4294967295])
def test_the_smallest_and_the_largest_seed_will_do(seed):
    assert sorted(epoch_order(4, seed, epoch=100_000).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 4, 6, 7])
def test_batches_that_are_skipped_change_nothing_about_those_that_follow(skip):
    batches = islice(shuffled_batches(Numbers(), "train", 2, 0, skip=skip), 4)

    assert numbers(batches) == read_shuffled(skip + 4)[skip:]


def test_batches_that_are_skipped_are_not_read(monkeypatch):
    read, asked = Numbers.read, []
    monkeypatch.setattr(Numbers, "read", lambda *rest: (asked.append(rest[2]), read(*rest))[1])

    next(shuffled_batches(Numbers(), "train", 2, 0, skip=2))

    assert [len(indices) for indices in asked] == [1]


@pytest.mark.parametrize("workers", [0, 2])
def test_processes_read_every_image_once_and_only_their_own(workers):
    first, second = (
        numbers(
            islice(
                shuffled_batches(
                    Numbers(),
                    "train",
                    5,
                    seed=0,
                    workers=workers,
                    part=ProcessGroup(torch.device("cpu"), rank, 2).local_slice,
                ),
                3,
            )
        )
        for rank in range(2)
    )

    assert [(len(a), len(b)) for a, b in zip(first, second, strict=True)] == [(2, 3)] * 3
    assert list(map(list.__add__, first, second)) == read_shuffled(3, batch_size=5)


@pytest.mark.parametrize(("number", "length"), [(0, 2), (1, 2), (2, 1), (3, 2), (5, 1)])
def test_the_length_of_every_batch_is_known_beforehand(number, length):
    assert batch_size_at(5, 2, number) == length
    assert len(read_shuffled(6)[number]) == length

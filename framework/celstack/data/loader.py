"""From a dataset to batches, in an order that the seed alone decides."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import DataLoader

from celstack.errors import CelstackError, MishapError
from celstack.interfaces.dataset import Batch, Dataset
from celstack.tensor_fields import map_tensors
from celstack.text import one_line


class _Split(torch.utils.data.Dataset[Batch | MishapError]):
    """One split, as torch's loader wants it; each index stands for a whole batch."""

    def __init__(self, dataset: Dataset, split: str, batches: Sequence[Sequence[int]]) -> None:
        self.dataset, self.split, self.batches = dataset, split, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch | MishapError:
        # Returned and not raised: torch would bring it from a worker with all its traceback.
        try:
            return _read(self.dataset, self.split, self.batches[index])
        except MishapError as error:
            return error


def in_order(dataset: Dataset, split: str, count: int, batch_size: int) -> Iterator[Batch]:
    """Read the first images of a split, in their order."""
    for indices in torch.arange(min(count, dataset.count(split))).split(batch_size):
        yield _read(dataset, split, indices.tolist())


def _read(dataset: Dataset, split: str, indices: Sequence[int]) -> Batch:
    """Read a batch; whatever happens to files meanwhile is a mishap of the run."""
    try:
        return dataset.read(split, indices)
    except (CelstackError, OSError) as error:
        told = str(error) if isinstance(error, CelstackError) else one_line(error)
        raise MishapError(f"images cannot be read: {told}") from error


def _leave_quietly(_: int) -> None:
    """Let a worker ignore Ctrl-C, which reaches it, too, and end without a word on SIGTERM.

    Both are for the run to hear; of a worker that fails, torch tells in the midst of a step.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _everything(_: int) -> slice:
    return slice(None)


def shuffled(
    dataset: Dataset,
    split: str,
    batch_size: int,
    seed: int,
    workers: int = 0,
    skip: int = 0,
    part: Callable[[int], slice] = _everything,
) -> Iterator[Batch]:
    """Read a split for ever, epoch after epoch, each in its own order.

    The last batch of an epoch may be smaller than the others. The first ``skip`` batches of
    all are left out, without being read; so are images that are not in the ``part`` of a
    batch of so many.
    """
    epoch, skip = divmod(skip, math.ceil(dataset.count(split) / batch_size))
    while True:
        order = epoch_order(dataset.count(split), seed, epoch)
        batches = [
            indices[part(len(indices))].tolist() for indices in order.split(batch_size)[skip:]
        ]
        skip = 0
        source = _Split(dataset, split, batches)
        # Each epoch's order is known beforehand, so workers cannot change it.
        # A generator of its own keeps the loader from drawing on the run's random state.
        own = torch.Generator()
        loader = DataLoader(
            source,
            batch_size=None,
            num_workers=workers,
            generator=own,
            worker_init_fn=_leave_quietly,
        )
        mishap = None
        for batch in loader:
            if isinstance(batch, MishapError):
                mishap = batch
                break
            yield batch
        # Not inside the loop, which would keep the workers for as long as the error is known.
        if mishap is not None:
            raise mishap
        epoch += 1


def batch_length(count: int, batch_size: int, number: int) -> int:
    """Return how many images the batch of this number has, of all of ``shuffled``."""
    before = number % math.ceil(count / batch_size) * batch_size
    return min(batch_size, count - before)


def epoch_order(count: int, seed: int, epoch: int) -> torch.Tensor:
    """Shuffle the indices of a split for one epoch."""
    # Torch reads 32 bits of a seed; the multiplier keeps the epochs of one run apart from
    # those of runs with neighbouring seeds, for hundreds of thousands of epochs.
    generator = torch.Generator().manual_seed(seed * 1_000_000_007 + epoch)
    return torch.randperm(count, generator=generator)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Return the batch with all its tensors on a device."""
    return map_tensors(lambda values: values.to(device), batch)

"""Load batches from a dataset, in an order that depends only on the seed."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import DataLoader

from celstack.errors import CelstackError, RecoverableError
from celstack.interfaces.dataset import Batch, Dataset
from celstack.tensor_fields import map_tensors
from celstack.text import describe_error


class _Split(torch.utils.data.Dataset[Batch | RecoverableError]):
    """A split for torch's DataLoader; each index stands for a whole batch."""

    def __init__(self, dataset: Dataset, split: str, batches: Sequence[Sequence[int]]) -> None:
        self.dataset, self.split, self.batches = dataset, split, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch | RecoverableError:
        # Returned, not raised: torch would add the worker's traceback to the message.
        try:
            return _read(self.dataset, self.split, self.batches[index])
        except RecoverableError as error:
            return error


def ordered_batches(
    dataset: Dataset, split: str, count: int, batch_size: int
) -> Iterator[Batch]:
    """Yield the first ``count`` images of a split, in order."""
    for indices in torch.arange(min(count, dataset.count(split))).split(batch_size):
        yield _read(dataset, split, indices.tolist())


def _read(dataset: Dataset, split: str, indices: Sequence[int]) -> Batch:
    """Read a batch; raise failures of reading as recoverable ones."""
    try:
        return dataset.read(split, indices)
    except (CelstackError, OSError) as error:
        reason = str(error) if isinstance(error, CelstackError) else describe_error(error)
        raise RecoverableError(f"images cannot be read: {reason}") from error


def _ignore_signals(_: int) -> None:
    """Make a worker ignore Ctrl-C and exit silently on SIGTERM.

    The main process handles both; torch would report a failed worker in the middle of a step.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _whole_batch(_: int) -> slice:
    return slice(None)


def shuffled_batches(
    dataset: Dataset,
    split: str,
    batch_size: int,
    seed: int,
    workers: int = 0,
    skip: int = 0,
    part: Callable[[int], slice] = _whole_batch,
) -> Iterator[Batch]:
    """Yield shuffled batches of a split forever, epoch after epoch.

    The last batch of an epoch may be smaller than the others.

    Args:
        dataset: The dataset.
        split: One of its splits.
        batch_size: Images per batch.
        seed: Determines the order of each epoch.
        workers: Processes that read images; they do not change the order.
        skip: The number of batches to leave out at the start, without reading them.
        part: Maps the number of images of a batch to the slice that this rank reads.
    """
    epoch, skip = divmod(skip, math.ceil(dataset.count(split) / batch_size))
    while True:
        order = epoch_order(dataset.count(split), seed, epoch)
        batches = [
            indices[part(len(indices))].tolist() for indices in order.split(batch_size)[skip:]
        ]
        skip = 0
        source = _Split(dataset, split, batches)
        # A separate generator, because DataLoader would draw from torch's global one.
        generator = torch.Generator()
        loader = DataLoader(
            source,
            batch_size=None,
            num_workers=workers,
            generator=generator,
            worker_init_fn=_ignore_signals,
        )
        failure = None
        for batch in loader:
            if isinstance(batch, RecoverableError):
                failure = batch
                break
            yield batch
        # Not inside the loop: its frame would keep the workers alive as long as the error.
        if failure is not None:
            raise failure
        epoch += 1


def batch_size_at(count: int, batch_size: int, number: int) -> int:
    """Return the number of images in a batch of `shuffled_batches`, numbered from 0."""
    before = number % math.ceil(count / batch_size) * batch_size
    return min(batch_size, count - before)


def epoch_order(count: int, seed: int, epoch: int) -> torch.Tensor:
    """Return the shuffled indices of a split for one epoch."""
    # Torch uses 32 bits of a seed. The multiplier keeps the seeds of epochs distinct for runs
    # with adjacent seeds, over hundreds of thousands of epochs.
    generator = torch.Generator().manual_seed(seed * 1_000_000_007 + epoch)
    return torch.randperm(count, generator=generator)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Move all tensors of a batch to a device."""
    return map_tensors(lambda values: values.to(device), batch)

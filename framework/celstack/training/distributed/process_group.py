"""The ranks that train one run: how batches are split, and collective operations.

Lightning Fabric sets up the group (``setup.py``); the collectives call ``torch.distributed``
directly. Fabric's own ``all_reduce`` adds a barrier to every call, its ``broadcast`` always
uses the default group, whose timeout is that of startup, and neither names the lost rank.
Objects are sent by ``torch.save`` and read with ``weights_only=True``, because
``broadcast_object_list`` unpickles whatever it receives.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from celstack.errors import CelstackError, ProcessLostError
from celstack.training.distributed.liveness import Peers

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup as TorchProcessGroup


class ProcessGroup:
    """The processes that train one run together, seen from one of them.

    Every batch is split into contiguous shards, one per rank, and results are gathered in the
    order of the batch. A batch with fewer than two images per rank is replicated instead,
    because batch normalization needs two images: then every rank computes all of it.

    Args:
        device: The device of this rank.
        rank: The number of this process, from 0.
        world_size: The number of processes; with 1, all collectives are no-ops.
        torch_group: The group of ``torch.distributed``; None with one process.
    """

    def __init__(
        self,
        device: torch.device,
        rank: int = 0,
        world_size: int = 1,
        torch_group: TorchProcessGroup | None = None,
    ) -> None:
        self.device, self.rank, self.world_size = device, rank, world_size
        self.torch_group = torch_group
        self.peers = Peers(rank, [])
        self.batch_size = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> ProcessGroup:
        """Return the same group: copies of a model belong to the model's process group."""
        return self

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which alone writes files and calls observers."""
        return self.rank == 0

    def begin_batch(self, images: int) -> None:
        """Set the size of the global batch that the following calls refer to."""
        self.batch_size = images

    @property
    def is_sharded(self) -> bool:
        """Whether the batch is split among ranks, and not replicated on each."""
        return self.world_size > 1 and self.batch_size >= 2 * self.world_size

    @property
    def shard_sizes(self) -> list[int]:
        """The number of images of the batch on each rank, if the batch is sharded."""
        images = range(self.batch_size)
        ranks = range(self.world_size)
        return [len(images[self._shard(rank, self.batch_size)]) for rank in ranks]

    def local_slice(self, images: int) -> slice:
        """Return which images of a global batch of this size belong to this rank."""
        return slice(None) if images < 2 * self.world_size else self._shard(self.rank, images)

    def _shard(self, rank: int, images: int) -> slice:
        return slice(images * rank // self.world_size, images * (rank + 1) // self.world_size)

    @property
    def local_weight(self) -> float:
        """The weight of this rank's mean in the mean over the batch; all weights sum to 1."""
        if not self.is_sharded:
            return 1 / self.world_size
        return self.shard_sizes[self.rank] / self.batch_size

    def all_reduce_sum(self, values: Shaped[Tensor, "*any"]) -> Shaped[Tensor, "*any"]:
        """Return the sum of a tensor over all ranks; the argument is not changed."""
        if self.world_size == 1:
            return values
        from torch import distributed

        total = values.clone()
        with self._naming_lost_ranks():
            distributed.all_reduce(total, group=self.torch_group)
        return total

    def mean_denominator(self, where: Bool[Tensor, "*any"]) -> Shaped[Tensor, ""]:
        """Return what to divide a local sum over ``where`` by to get the batch's mean.

        The quotients of all ranks, multiplied by their ``local_weight``, add up to the mean
        over the global batch. The count is at least 1, so that the mean over nothing is 0.
        """
        count = where.sum()
        if not self.is_sharded:
            return count.clamp_min(1)
        return self.all_reduce_sum(count).clamp_min(1) * self.local_weight

    def all_gather(self, values: Shaped[Tensor, " n"]) -> Shaped[Tensor, "world_size n"]:
        """Return the vectors of all ranks, stacked; they must have the same length."""
        from torch import distributed

        gathered = [torch.empty_like(values) for _ in range(self.world_size)]
        with self._naming_lost_ranks():
            distributed.all_gather(gathered, values.contiguous(), group=self.torch_group)
        return torch.stack(gathered)

    def gather_batch(self, shards: Sequence[Shaped[Tensor, "b ..."]]) -> list[Tensor]:
        """Concatenate per-image tensors of all ranks in batch order, without gradients."""
        if not self.is_sharded:
            return [shard.detach() for shard in shards]
        # Packed into one byte tensor, so that a single all_gather is enough.
        rows = [_as_bytes(shard.detach()) for shard in shards]
        sizes = self.shard_sizes
        own = rows[0].new_zeros(max(sizes), sum(row.shape[1] for row in rows))
        own[: sizes[self.rank]] = torch.cat(rows, dim=1)
        gathered = self.all_gather(own.flatten()).view(self.world_size, *own.shape)
        batch = torch.cat([one[:size] for one, size in zip(gathered, sizes, strict=True)])
        columns = batch.split([row.shape[1] for row in rows], dim=1)
        return [
            column.contiguous().view(shard.dtype).view(self.batch_size, *shard.shape[1:])
            for column, shard in zip(columns, shards, strict=True)
        ]

    def broadcast_(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors, in place, with the values they have on rank 0."""
        if self.world_size == 1:
            return
        from torch import distributed

        for tensor in tensors:
            on_device = tensor.detach().to(self.device)
            with self._naming_lost_ranks():
                distributed.broadcast(on_device, 0, group=self.torch_group)
            if on_device.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(on_device)

    def broadcast_bytes(self, content: bytes) -> bytes:
        """Return rank 0's bytes; those of other ranks are ignored."""
        if self.world_size == 1:
            return content
        length = torch.tensor([len(content)])
        self.broadcast_([length])
        if not length:
            return b""
        buffer = content if self.is_main else bytes(int(length))
        values = torch.frombuffer(bytearray(buffer), dtype=torch.uint8)
        self.broadcast_([values])
        return values.numpy().tobytes()

    def broadcast_object(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return rank 0's nested dict of tensors and numbers, such as a checkpoint."""
        if self.world_size == 1:
            return state
        content = io.BytesIO()
        if self.is_main:
            torch.save(state, content)
        received = io.BytesIO(self.broadcast_bytes(content.getvalue()))
        return state if self.is_main else dict(torch.load(received, weights_only=True))

    @contextmanager
    def raise_on_all_ranks(self) -> Iterator[None]:
        """Re-raise rank 0's CelstackError on every rank."""
        try:
            yield
        except CelstackError as error:
            if self.is_main:
                self.broadcast_bytes(str(error).encode("utf-8", "backslashreplace"))
            raise
        message = self.broadcast_bytes(b"")
        if message:
            raise CelstackError(message.decode())

    @contextmanager
    def _naming_lost_ranks(self) -> Iterator[None]:
        """Turn the failure of a collective into an error that names the lost ranks."""
        try:
            yield
        # All backends of torch.distributed raise RuntimeError or a subclass.
        except RuntimeError as error:
            raise ProcessLostError(*self.peers.describe_lost(str(error))) from error


def _as_bytes(values: Shaped[Tensor, "b ..."]) -> Shaped[Tensor, "b n"]:
    return values.reshape(len(values), -1).contiguous().view(torch.uint8)

"""The processes of a run: each takes its share of every batch, and all agree on the rest."""

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
    from torch.distributed import ProcessGroup


class Processes:
    """The processes that train one run together, seen from one of them: one, unless told.

    Each batch is divided into stretches, one for each process, and what they make of it is put
    together again in its order. A batch with fewer than two images for each is not divided,
    because one image alone has no statistics: then everybody takes all of it.
    """

    def __init__(
        self,
        device: torch.device,
        rank: int = 0,
        count: int = 1,
        group: ProcessGroup | None = None,
    ) -> None:
        self.device, self.rank, self.count, self.group = device, rank, count, group
        self.peers = Peers(rank, [])
        self.total = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        """Return these: copies of a model are in the same processes as the model."""
        return self

    @property
    def first(self) -> bool:
        """Whether this is the process that writes, and is watched."""
        return self.rank == 0

    def divide(self, images: int) -> None:
        """Begin with another batch of so many images."""
        self.total = images

    @property
    def divided(self) -> bool:
        """Whether the batch is shared out, and not taken by everybody."""
        return self.count > 1 and self.total >= 2 * self.count

    @property
    def sizes(self) -> list[int]:
        """How many images of the batch each process has."""
        return [len(range(self.total)[self._stretch(rank)]) for rank in range(self.count)]

    def part(self, images: int) -> slice:
        """Say which stretch of a batch of so many images is this process's own."""
        return slice(None) if images < 2 * self.count else self._stretch(self.rank, images)

    def _stretch(self, rank: int, images: int | None = None) -> slice:
        total = self.total if images is None else images
        return slice(total * rank // self.count, total * (rank + 1) // self.count)

    @property
    def weight(self) -> float:
        """How much of a mean over the batch is this process's own mean."""
        return self.sizes[self.rank] / self.total if self.divided else 1 / self.count

    def sum(self, values: Shaped[Tensor, "*any"]) -> Shaped[Tensor, "*any"]:
        """Add up what all processes have."""
        if self.count == 1:
            return values
        from torch import distributed

        total = values.clone()
        with self._together():
            distributed.all_reduce(total, group=self.group)
        return total

    def mean_count(self, where: Bool[Tensor, "*any"]) -> Shaped[Tensor, ""]:
        """Count, at least 1, so that sums over it, weighted, add up to the batch's mean."""
        counted = where.sum()
        if not self.divided:
            return counted.clamp_min(1)
        return self.sum(counted).clamp_min(1) * self.weight

    def stack(self, values: Shaped[Tensor, " n"]) -> Shaped[Tensor, "count n"]:
        """Return what each process has, all of one length, one after the other."""
        from torch import distributed

        found = [torch.empty_like(values) for _ in range(self.count)]
        with self._together():
            distributed.all_gather(found, values.contiguous(), group=self.group)
        return torch.stack(found)

    def gather(self, parts: Sequence[Shaped[Tensor, "b ..."]]) -> list[Tensor]:
        """Put together what processes have of their images, without gradients."""
        if not self.divided:
            return [part.detach() for part in parts]
        # All as bytes, so that one message does.
        rows = [_as_bytes(part.detach()) for part in parts]
        sizes = self.sizes
        own = rows[0].new_zeros(max(sizes), sum(row.shape[1] for row in rows))
        own[: sizes[self.rank]] = torch.cat(rows, dim=1)
        found = self.stack(own.flatten()).view(self.count, *own.shape)
        whole = torch.cat([one[:size] for one, size in zip(found, sizes, strict=True)])
        columns = whole.split([row.shape[1] for row in rows], dim=1)
        return [
            column.contiguous().view(part.dtype).view(self.total, *part.shape[1:])
            for column, part in zip(columns, parts, strict=True)
        ]

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Make tensors, in place, what they are in the first process."""
        if self.count == 1:
            return
        from torch import distributed

        for tensor in tensors:
            there = tensor.detach().to(self.device)
            with self._together():
                distributed.broadcast(there, 0, group=self.group)
            if there.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(there)

    def tell(self, words: bytes) -> bytes:
        """Return what the first process says."""
        if self.count == 1:
            return words
        length = torch.tensor([len(words)])
        self.follow([length])
        if not length:
            return b""
        blank = words if self.first else bytes(int(length))
        content = torch.frombuffer(bytearray(blank), dtype=torch.uint8)
        self.follow([content])
        return content.numpy().tobytes()

    def tell_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the tensors and numbers, by name, that the first process has."""
        if self.count == 1:
            return state
        content = io.BytesIO()
        if self.first:
            torch.save(state, content)
        told = io.BytesIO(self.tell(content.getvalue()))
        return state if self.first else dict(torch.load(told, weights_only=True))

    @contextmanager
    def one_mind(self) -> Iterator[None]:
        """Let a complaint that the first process makes in this block be everybody's."""
        try:
            yield
        except CelstackError as error:
            if self.first:
                self.tell(str(error).encode())
            raise
        complaint = self.tell(b"")
        if complaint:
            raise CelstackError(complaint.decode())

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Say who is gone when processes cannot do something together."""
        try:
            yield
        # That is what torch raises, whatever carries its messages.
        except RuntimeError as error:
            raise ProcessLostError(*self.peers.find_lost(str(error))) from error


def _as_bytes(values: Shaped[Tensor, "b ..."]) -> Shaped[Tensor, "b n"]:
    return values.reshape(len(values), -1).contiguous().view(torch.uint8)

"""Stop all ranks after the same step, whichever of them received a signal."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import torch

from celstack.signals import Terminated
from celstack.training.distributed.launcher import LAUNCHER_PID
from celstack.training.distributed.process_group import ProcessGroup


class StopCoordinator:
    """Records SIGINT and SIGTERM while it is entered; ``check`` raises them on all ranks.

    A second SIGINT raises KeyboardInterrupt at once, on its rank only. A run whose launcher
    has died is stopped, too. With one process, signals are left to their own handlers.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group
        self.launcher_pid = int(os.environ.get(LAUNCHER_PID, "0"))
        self.received: list[int] = []
        self.previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> StopCoordinator:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if self.group.world_size > 1 and in_main_thread:
            for number in (signal.SIGINT, signal.SIGTERM):
                self.previous_handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.received.append(number)
        if self.received.count(signal.SIGINT) > 1 and number == signal.SIGINT:
            raise KeyboardInterrupt

    def share_reason(self, reason: str) -> str:
        """Return rank 0's reason to end training on all ranks; empty if it has none."""
        return self.group.broadcast_bytes(reason.encode("utf-8", "replace")).decode()

    def check(self, ending: bool = False) -> bool:
        """Raise Terminated or KeyboardInterrupt on all ranks if any rank received a signal.

        Args:
            ending: Whether this rank wants to end training.

        Returns:
            Whether any rank does.
        """
        if self.group.world_size == 1:
            return ending
        orphaned = self.launcher_pid and os.getppid() != self.launcher_pid
        flags = [bool(self.received or orphaned), signal.SIGTERM in self.received, ending]
        local = torch.tensor(flags, dtype=torch.int64, device=self.group.device)
        stopped, terminated, ended = self.group.all_reduce_sum(local).tolist()
        if stopped:
            raise Terminated if terminated else KeyboardInterrupt
        return bool(ended)

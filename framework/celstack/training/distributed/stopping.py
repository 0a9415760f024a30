"""Stopping: all processes of a run end after the same step, whoever of them was asked to."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import torch

from celstack.signals import Terminated
from celstack.training.distributed.launcher import PARENT
from celstack.training.distributed.process_group import Processes


class Stopping:
    """Hears Ctrl-C and SIGTERM for processes that go in step; one alone hears them itself.

    A second Ctrl-C waits for nobody. A run whose launcher is gone is asked to stop, too.
    """

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.parent = int(os.environ.get(PARENT, "0"))
        self.heard: list[int] = []
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        main = threading.current_thread() is threading.main_thread()
        if self.processes.count > 1 and main:
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        self.heard.append(number)
        if self.heard.count(signal.SIGINT) > 1 and number == signal.SIGINT:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Stop, all at once, if anybody was asked to."""
        if self.processes.count == 1:
            return
        orphan = self.parent and os.getppid() != self.parent
        mine = [bool(self.heard or orphan), signal.SIGTERM in self.heard]
        asked = torch.tensor(mine, dtype=torch.int64, device=self.processes.device)
        stopped, terminated = self.processes.sum(asked).tolist()
        if stopped:
            raise Terminated if terminated else KeyboardInterrupt

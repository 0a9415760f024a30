"""The keeper of a run: counts steps, logs losses, and keeps what was learned."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch

from celstack.errors import RunFailedError
from celstack.model import Decomposer
from celstack.objective import Loss
from celstack.rundir import RunDirectory

BLOCK = 25
"""How many steps of an accelerator are logged at a time."""


class Keeper:
    """Counts the steps and keeps what was learned, if there is a directory to keep it in."""

    def __init__(
        self,
        decomposer: Decomposer,
        optimizer: torch.optim.Optimizer,
        directory: RunDirectory | None,
    ) -> None:
        self.decomposer, self.optimizer, self.directory = decomposer, optimizer, directory
        self.folder = directory.folder if directory else None
        self.step = 0
        self.stage = 1
        self.saved = 0
        self.pending: list[tuple[int, str, Loss]] = []

    def count_step(self, loss: Loss, stage: str) -> None:
        """Count a step; log it now, or with others where asking for numbers takes time."""
        self.step += 1
        self.pending.append((self.step, stage, loss))
        if loss.total.device.type == "cpu" or len(self.pending) == BLOCK:
            self.log_pending()

    def log_pending(self) -> None:
        """Log the steps since the last time, or stop at one whose loss is not a number."""
        for step, stage, loss in self.pending:
            numbers = loss.numbers()
            for name, value in numbers.items():
                if not math.isfinite(value):
                    self.step = step - 1
                    raise RunFailedError(
                        f"step {step}: the loss is {value} in its term '{name}'; try lower "
                        f"learning rates, and look for odd values in the images{self._kept()}"
                    )
            if self.directory:
                self.directory.log(step=step, stage=stage, **numbers)
        self.pending.clear()

    def log(self, **fields: Any) -> None:
        """Write a line about this step."""
        if self.directory:
            self.directory.log(step=self.step, **fields)

    def save(self) -> None:
        """Write a checkpoint; weights that are not numbers must not replace good ones."""
        self.log_pending()
        for name, weight in self.decomposer.state_dict().items():
            if not torch.isfinite(weight).all():
                raise RunFailedError(
                    f"step {self.step}: the weights of {name} are no longer numbers; try "
                    f"lower learning rates{self._kept()}"
                )
        if self.directory:
            state = (self.decomposer, self.optimizer, self.step, self.stage)
            self.directory.save_checkpoint(*state)
            self.saved = self.step

    def _kept(self) -> str:
        return f"; the checkpoint of step {self.saved} is kept" if self.saved else ""

    def save_if_sound(self) -> None:
        """Write a checkpoint when a run is stopped, unless that would spoil the last one."""
        with suppress(RunFailedError, OSError):
            if self.step:
                self.save()

"""The keeper of a run: counts steps, logs losses, and keeps what was learned."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from celstack.errors import RunFailedError
from celstack.evaluation.usage import Usage
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss
from celstack.runs.checkpoint import (
    check_resumable,
    pack_checkpoint,
    read_checkpoint,
    restore_checkpoint,
)
from celstack.runs.directory import RunDirectory
from celstack.runs.findings import Finding
from celstack.runs.finished import read_recipe_json
from celstack.scene import Scene
from celstack.signals import uninterrupted
from celstack.text import printable
from celstack.training.distributed.engine import Engine

BLOCK = 25
"""How many steps of an accelerator are logged at a time."""
USAGE_EVERY = 10
"""The usage of each tenth step tells enough, and keeps the log short."""


class Keeper:
    """Counts the steps and keeps what was learned, if there is a directory to keep it in."""

    def __init__(
        self,
        decomposer: Decomposer,
        optimizer: torch.optim.Optimizer,
        directory: RunDirectory | None,
        engine: Engine | None = None,
    ) -> None:
        self.decomposer, self.optimizer, self.directory = decomposer, optimizer, directory
        self.engine = engine or Engine()
        device = next(decomposer.parameters()).device
        self.usage = Usage(decomposer.sprites.count, device)
        self.folder = directory.folder if directory else None
        self.recipe = read_recipe_json(directory.folder) if directory else ""
        self.step = 0
        self.stage = 1
        self.saved = 0
        self.whole = True
        # Clocks are set forth and back; between two lines of a log, time only passes.
        self.clock = time.time() - time.monotonic()
        self.pending: list[tuple[int, str, Loss]] = []

    def resume(self) -> None:
        """Go back to the last checkpoint; where there is none yet, to the beginning."""
        path = (self.folder or Path()) / "checkpoint.pt"
        processes = self.engine.processes
        state: dict[str, Any] = {}
        with processes.one_mind():
            if processes.first and path.exists():
                state = read_checkpoint(path)
                check_resumable(state, self.recipe, path)
        state = processes.tell_state(state)
        if self.directory:
            self.directory.truncate_log(state.get("log", 0))
        if not state:
            return
        restore_checkpoint(
            state, self.decomposer, self.optimizer, self.usage.counts, path.parent
        )
        if state["model"].keys() != self.decomposer.state_dict().keys():
            self._warn(f"{path}: was made by an earlier version and is converted")
        self.engine.load_state(state.get("scaler", {}))
        self.step = self.saved = state["step"]
        here = str(torch.__version__)
        if state["torch"] != here:
            made = printable(state["torch"])
            self._warn(f"{path}: was made with torch {made}, and this is {here}")

    def _warn(self, text: str) -> None:
        if self.engine.processes.first:
            said = f"celstack: warning: {text}: the run goes on, but not to the last bit"
            print(said, file=sys.stderr)  # noqa: T201

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Take one step, which Ctrl-C does not halve; one that fails is never saved."""
        with uninterrupted():
            self.whole = False
            yield
            self.whole = True

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
        """Write a line about this step, and when it was."""
        if self.directory:
            self.directory.log(
                step=self.step, time=round(self.clock + time.monotonic(), 3), **fields
            )

    def log_usage(self, scene: Scene) -> None:
        """Log, every so many steps, how often the last one used each sprite."""
        if self.directory and self.step % USAGE_EVERY == 0:
            usage = Usage(self.decomposer.sprites.count, scene.sprite.device)
            usage.add(scene.sprite)
            self.log(usage=usage.counts.tolist())

    def log_findings(self, findings: Sequence[Finding]) -> None:
        """Log what the health check found: an empty list where all is well."""
        self.log(health=[finding._asdict() for finding in findings])

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
            counts, place = self.usage.counts, (self.step, self.stage)
            state = pack_checkpoint(self.decomposer, self.optimizer, counts, place, self.recipe)
            self.directory.save_checkpoint({**state, **self.engine.state()})
            self.saved = self.step

    def _kept(self) -> str:
        return f"; the checkpoint of step {self.saved} is kept" if self.saved else ""

    def save_if_sound(self) -> None:
        """Write a checkpoint when a run is stopped, unless that would spoil the last one."""
        # Something ended the run already, and that is what is told.
        with suppress(RunFailedError, OSError, MemoryError, RuntimeError):
            if self.whole and self.step > self.saved:
                self.save()

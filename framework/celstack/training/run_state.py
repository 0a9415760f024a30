"""The state of a run: its step counter, log and checkpoints."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from celstack.errors import RunFailedError
from celstack.evaluation.usage import Usage
from celstack.model.decomposer import Decomposer
from celstack.model.divergence import DivergedError, blame_divergence
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
from celstack.runs.validated import (
    Validated,
    pack_validations,
    unpack_reason,
    unpack_validations,
)
from celstack.scene import Scene
from celstack.signals import defer_interrupts
from celstack.text import printable
from celstack.training.distributed.engine import Engine

LOG = logging.getLogger("celstack")
LOG_BLOCK_STEPS = 25
"""On an accelerator, losses are read and logged in blocks, because reading synchronizes."""
USAGE_EVERY_STEPS = 10
"""How often the usage of sprites is logged; more would make the log long."""


class RunState:
    """Everything that changes during a run, and how it is logged, saved and resumed.

    Args:
        decomposer: The model, on its device.
        optimizer: Its optimizer.
        directory: Where to write; without one nothing is logged or saved. On ranks other
            than 0 it is None.
        engine: The processes and the precision; by default one process, 32 bits.
    """

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
        self.saved_step = 0
        self.ended = ""
        """Why training has ended before its last step; empty if it has not."""
        self.asked = ""
        """Why training is to end after this step; empty if it is not."""
        self.hears_of_step = False
        """Whether observers are being notified of a step that was taken."""
        self.validations: list[Validated] = []
        self.consistent = True
        """False while a step is in progress, and after one that failed."""
        # The wall clock may be adjusted; times in the log must not go backwards.
        self.clock = time.time() - time.monotonic()
        self.pending: list[tuple[int, str, Loss]] = []

    def resume(self) -> None:
        """Load the last checkpoint on all ranks; without one, start from the beginning."""
        path = (self.folder or Path()) / "checkpoint.pt"
        group = self.engine.group
        state: dict[str, Any] = {}
        with group.raise_on_all_ranks():
            if group.is_main and path.exists():
                state = read_checkpoint(path)
                check_resumable(state, self.recipe, path)
        state = group.broadcast_object(state)
        if self.directory:
            self.directory.truncate_log(state.get("log", 0))
        if not state:
            return
        restore_checkpoint(
            state, self.decomposer, self.optimizer, self.usage.counts, path.parent
        )
        groups = state["optimizer"]["param_groups"]
        if state["model"].keys() != self.decomposer.state_dict().keys() or (
            len(groups) != len(self.optimizer.param_groups)
        ):
            self._warn(f"{path}: converted from an earlier version of Celstack")
        self.engine.load_scaler(state.get("scaler", {}))
        self.step = self.saved_step = state["step"]
        self.stage = state["stage"]
        self.ended, self.asked = (unpack_reason(state, key, path) for key in ("ended", "asked"))
        self.validations = unpack_validations(state, path)
        installed = str(torch.__version__)
        if state["torch"] != installed:
            saved_with = printable(state["torch"])
            self._warn(f"{path}: saved with torch {saved_with}, now running {installed}")

    def _warn(self, text: str) -> None:
        if self.engine.group.is_main:
            LOG.warning("%s; results may differ in the last digits", text)

    @contextmanager
    def atomic_step(self) -> Iterator[None]:
        """Defer Ctrl-C and SIGTERM to the end of a step; a step that fails is never saved."""
        number = self.step + 1
        with defer_interrupts():
            self.consistent = False
            try:
                with blame_divergence(self.decomposer):
                    yield
            except DivergedError as error:
                text = f"step {number}: {error}{self._last_checkpoint()}"
                raise RunFailedError(text) from error
            self.consistent = self.hears_of_step = True

    def count_step(self, loss: Loss, stage: str) -> None:
        """Increment the step counter, and log the loss, at once or in blocks."""
        self.step += 1
        self.pending.append((self.step, stage, loss))
        if loss.total.device.type == "cpu" or len(self.pending) == LOG_BLOCK_STEPS:
            self.log_pending()

    def log_pending(self) -> None:
        """Log the losses not logged yet; raise RunFailedError at one that is not finite."""
        for step, stage, loss in self.pending:
            numbers = loss.numbers()
            for name, value in numbers.items():
                if not math.isfinite(value):
                    self.step = step - 1
                    raise RunFailedError(
                        f"step {step}: the loss is {value} in its term '{name}'; try lower "
                        f"learning rates, and check the images' values{self._last_checkpoint()}"
                    )
            if self.directory:
                self.directory.log(step=step, stage=stage, **numbers)
        self.pending.clear()

    def log(self, **fields: Any) -> None:
        """Write a line with fields of this step, and the time, to the log."""
        if self.directory:
            self.directory.log(
                step=self.step, time=round(self.clock + time.monotonic(), 3), **fields
            )

    def log_usage(self, scene: Scene) -> None:
        """Log how often the scenes use each sprite, every ``USAGE_EVERY_STEPS`` steps."""
        if self.directory and self.step % USAGE_EVERY_STEPS == 0:
            usage = Usage(self.decomposer.sprites.count, scene.sprite.device)
            usage.add(scene.sprite)
            self.log(usage=usage.counts.tolist())

    def log_findings(self, findings: Sequence[Finding]) -> None:
        """Log what the health check found; an empty list means no problems."""
        self.log(health=[finding._asdict() for finding in findings])

    def save(self) -> None:
        """Write a checkpoint; raise RunFailedError instead if a weight is not finite."""
        self.log_pending()
        for name, weight in self.decomposer.state_dict().items():
            if not torch.isfinite(weight).all():
                raise RunFailedError(
                    f"step {self.step}: the weights of {name} are not finite; try lower "
                    f"learning rates{self._last_checkpoint()}"
                )
        if self.directory:
            counts, place = self.usage.counts, (self.step, self.stage)
            state = pack_checkpoint(self.decomposer, self.optimizer, counts, place, self.recipe)
            steered = {
                "ended": self.ended,
                "asked": self.asked,
                "validations": pack_validations(self.validations),
            }
            self.directory.save_checkpoint({**state, **steered, **self.engine.state_dict()})
            self.saved_step = self.step

    def _last_checkpoint(self) -> str:
        return f"; the checkpoint of step {self.saved_step} is kept" if self.saved_step else ""

    def save_on_exit(self, asked: str = "") -> None:
        """Save a run that is being stopped, unless a step is half done; ignore errors.

        Args:
            asked: Why an observer wants training to end. It is saved if it was said of a step
                that was taken; hooks before a step are called again when the run is resumed.
        """
        if self.hears_of_step and not self.ended:
            self.asked = self.asked or asked
        unsaved = self.step > self.saved_step or self.asked or self.ended
        # An exception is being handled already, and that one is reported.
        with suppress(RunFailedError, OSError, MemoryError, RuntimeError):
            if self.consistent and unsaved:
                self.save()

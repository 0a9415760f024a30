"""Validation: evaluate a model during training, and end training if scores stagnate."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from celstack.errors import RunFailedError
from celstack.evaluation.metric_list import warn_of_failures
from celstack.recipe.assembly import Assembly, Evaluation
from celstack.recipe.schedule import ScheduledStage
from celstack.runs.validated import Validated
from celstack.training.callbacks import CallbackList
from celstack.training.distributed.stopping import StopCoordinator
from celstack.training.evaluate import score
from celstack.training.run_state import RunState


class Validator:
    """Evaluates a model every ``validation.every`` steps, without any effect on training.

    Args:
        assembly: The metrics, the dataset and the settings.
        state: The run, which keeps all scores.
        stages: The schedule; early stopping applies to its last stage.
    """

    def __init__(
        self, assembly: Assembly, state: RunState, stages: Sequence[ScheduledStage]
    ) -> None:
        self.assembly, self.state, self.settings = assembly, state, assembly.validation
        self.last_stage = stages[-1]
        self.failures: dict[str, str] = {}
        """Why metrics had no score, by their names; each was told once."""

    @property
    def is_due(self) -> bool:
        """Whether the current step has to be evaluated, and was not yet."""
        step, every, done = self.state.step, self.settings.every, self.state.validations
        # The last step is evaluated in any case.
        inside = 0 < step < self.last_stage.end
        return bool(every and inside and step % every == 0) and (
            not done or done[-1].step < step
        )

    def validate(self, callbacks: CallbackList, stopping: StopCoordinator) -> None:
        """Evaluate, log the scores and notify observers; note if training should end."""
        state, settings = self.state, self.settings
        failures: dict[str, str] = {}
        device = next(state.decomposer.parameters()).device
        # Parts may draw random numbers; training has to go on as if nothing had been drawn.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            scores = score(
                state.decomposer,
                self.assembly.dataset,
                self.assembly.metrics,
                Evaluation(
                    split=settings.split,
                    images=settings.images,
                    batch_size=settings.batch_size,
                ),
                watch=lambda _: stopping.check(),
                engine=state.engine,
                failures=failures,
            )
        if state.engine.group.is_main:
            new = failures.keys() - self.failures.keys()
            warn_of_failures({name: failures[name] for name in sorted(new)})
        self.failures |= failures
        scores = {name: float(value) for name, value in scores.items()}
        state.validations.append(Validated(state.step, scores))
        state.log(validation=scores)
        # Before observers are notified: a run stopped meanwhile does not validate again.
        if settings.stop_on and self.last_stage.start < state.step:
            state.asked = state.asked or callbacks.stop_reason or self._exhausted()
        callbacks.notify("celstack_validated", step=state.step, scores=scores)

    def _exhausted(self) -> str:
        """Return why training should end; empty if scores have improved lately."""
        name, patience = self.settings.stop_on, self.settings.patience
        metric = next(metric for metric in self.assembly.metrics if metric.name == name)
        inside = [one for one in self.state.validations if one.step > self.last_stage.start]
        if name not in inside[-1].scores:
            raise RunFailedError(
                f"step {self.state.step}: validation.stop_on: {name} has no score on the "
                f"images of '{self.settings.split}'"
            )
        sign = 1.0 if metric.percent else -1.0
        inside = [one for one in inside if name in one.scores]
        scores = [sign * one.scores[name] for one in inside]
        best = -1
        for index, value in enumerate(scores):
            if value == value and (best < 0 or value > scores[best]):
                best = index
        if len(scores) - 1 - best < patience:
            return ""
        if best < 0:
            return f"{name} is not a number in {patience} evaluations"
        found = f"{sign * scores[best]:.4g} after step {inside[best].step}"
        return f"{name} has not improved in {patience} evaluations; its best is {found}"

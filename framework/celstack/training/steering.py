"""Steering: stages, learning rates and the end of training, on all ranks alike."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.schedule import ScheduledStage
from celstack.signals import defer_interrupts
from celstack.training.callbacks import CallbackList
from celstack.training.distributed.stopping import StopCoordinator
from celstack.training.optimizer import set_learning_rates
from celstack.training.run_state import RunState


def stages_left(
    stages: Sequence[ScheduledStage], state: RunState, validation_due: bool
) -> list[ScheduledStage]:
    """Return the stages to go through, the first of which is in force when a run is resumed.

    Args:
        stages: The schedule.
        state: The run, at its start or as its checkpoint left it.
        validation_due: Whether the last step is still to be evaluated, in the stage it was
            taken in.
    """
    current = stages[min(max(state.stage, 1), len(stages)) - 1]
    if state.ended or state.asked:
        return [current]
    left = [scheduled for scheduled in stages if scheduled.end > state.step]
    if validation_due and current not in left:
        return [current, *left]
    # After the last step its stage stays in force: the model is evaluated with its selector.
    return left or [stages[-1]]


def begin_stage(decomposer: Decomposer, stage: Stage) -> None:
    """Set the selector, the active transforms and the frozen parts of a stage."""
    decomposer.use_selector(stage.selector)
    decomposer.activate(stage.transforms)
    decomposer.sprites_frozen = stage.freeze_sprites


class Steering:
    """Lets observers change learning rates and end training.

    Args:
        assembly: The run's parts; all ranks know its observers, and rank 0 calls them.
        state: The run.
        callbacks: The observers on rank 0, and none on other ranks.
        stopping: Agrees with the other ranks.
        steps: The number of steps of all stages.
    """

    def __init__(
        self,
        assembly: Assembly,
        state: RunState,
        callbacks: CallbackList,
        stopping: StopCoordinator,
        steps: int,
    ) -> None:
        self.state, self.callbacks, self.stopping = state, callbacks, stopping
        self.steps = steps
        hook = "celstack_step_started"
        self.may_change_rates = any(hasattr(one, hook) for one in assembly.observers)

    def set_rates(self, scheduled: ScheduledStage) -> dict[str, float]:
        """Set the learning rates of the next step, and return them by parameter group."""
        state = self.state
        factor = scheduled.rate_factor(state.step)
        rates = set_learning_rates(state.optimizer, scheduled.stage, factor)
        if not self.may_change_rates:
            return rates
        rates = self.callbacks.learning_rates(state.step + 1, rates, state.validations)
        values = torch.tensor([*rates.values()], dtype=torch.float64)
        state.engine.group.broadcast_([values])
        for group, rate in zip(state.optimizer.param_groups, values.tolist(), strict=True):
            group["lr"] = rate
        return dict(zip(rates, values.tolist(), strict=True))

    def end_step(self, save: bool) -> None:
        """End training if there is a reason to, and save a checkpoint if it ends or is due.

        The decision is part of the checkpoint: a run that is killed afterwards has ended, and
        one that is killed before takes its last steps again.

        Args:
            save: Whether a checkpoint is due.
        """
        state = self.state
        self._end_if_asked()
        if save or state.ended:
            state.save()
            state.engine.broadcast_state(state.decomposer, state.optimizer)
            if state.folder:
                self.callbacks.notify("celstack_checkpoint_saved", step=state.step)
            if not state.ended:  # those that hear of the checkpoint may ask for the end, too
                self.end_step(save=False)
        state.hears_of_step = False

    def _end_if_asked(self) -> None:
        """Log and notify that training has ended early, if it was asked to."""
        state = self.state
        reason = state.asked or self.callbacks.stop_reason
        early = state.step < self.steps
        if not self.stopping.check(ending=bool(reason) and early):
            return
        reason = self.stopping.share_reason(reason)
        with defer_interrupts():
            state.ended, state.asked = reason, ""
            state.log(ended=reason)
        self.callbacks.notify("celstack_training_ended", step=state.step, reason=state.ended)

"""Steering: stages, learning rates and the end of training, on all ranks alike."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.schedule import ScheduledStage
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
    if state.ended:
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
    """

    def __init__(
        self,
        assembly: Assembly,
        state: RunState,
        callbacks: CallbackList,
        stopping: StopCoordinator,
    ) -> None:
        self.state, self.callbacks, self.stopping = state, callbacks, stopping
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

    def end_if_asked(self) -> None:
        """Note that training has ended, save that and notify, if there is a reason for it."""
        state = self.state
        reason = state.ended or self.callbacks.stop_reason
        if not self.stopping.check(ending=bool(reason)):
            return
        state.ended = self.stopping.share_reason(reason)
        state.log(ended=state.ended)
        state.save()
        self.callbacks.notify("celstack_training_ended", step=state.step, reason=state.ended)

"""All hooks: what a plugin may provide, and when an observer is called.

A plugin module decorates functions of these names with ``celstack.hookimpl``. Those of
the first group return the classes a recipe may ``use``, by name, and do nothing else.
Those of the second group are methods of an observer, which declares only the arguments it
needs::

    class Losses(celstack.Observer):
        @celstack.hookimpl
        def celstack_step_finished(self, step, loss):
            print(step, float(loss.total))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from celstack.interfaces.compositor import Compositor
    from celstack.interfaces.dataset import Dataset
    from celstack.interfaces.encoder import Encoder
    from celstack.interfaces.metric import Metric
    from celstack.interfaces.observer import Observer
    from celstack.interfaces.predictor import Predictor
    from celstack.interfaces.prototype import Prototype
    from celstack.interfaces.selector import Selector
    from celstack.interfaces.transform import Transform
    from celstack.model.decomposer import Decomposer
    from celstack.model.objective import Loss
    from celstack.recipe.assembly import Assembly
    from celstack.recipe.schedule import ScheduledStage
    from celstack.runs.findings import Finding
    from celstack.runs.validated import Validated
    from celstack.scene import Scene

PROJECT = "celstack"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# What a plugin may provide.


@hookspec
def celstack_datasets() -> dict[str, type[Dataset]]:  # type: ignore[empty-body]
    """Provide datasets, for ``[dataset]``."""


@hookspec
def celstack_prototypes() -> dict[str, type[Prototype]]:  # type: ignore[empty-body]
    """Provide prototypes, for ``[sprites]`` and ``[backgrounds]``."""


@hookspec
def celstack_transforms() -> dict[str, type[Transform]]:  # type: ignore[empty-body]
    """Provide transforms, for ``[[transforms.layer]]`` and its siblings."""


@hookspec
def celstack_compositors() -> dict[str, type[Compositor]]:  # type: ignore[empty-body]
    """Provide compositors, for ``[compositor]``."""


@hookspec
def celstack_selectors() -> dict[str, type[Selector]]:  # type: ignore[empty-body]
    """Provide selectors, for ``[selector]``."""


@hookspec
def celstack_predictors() -> dict[str, type[Predictor]]:  # type: ignore[empty-body]
    """Provide predictors, for ``[predictor]``."""


@hookspec
def celstack_encoders() -> dict[str, type[Encoder]]:  # type: ignore[empty-body]
    """Provide encoders, for ``[predictor.encoder]``."""


@hookspec
def celstack_metrics() -> dict[str, type[Metric]]:  # type: ignore[empty-body]
    """Provide metrics, for ``metrics``."""


@hookspec
def celstack_observers() -> dict[str, type[Observer]]:  # type: ignore[empty-body]
    """Provide observers, for ``observers``."""


# Lifecycle hooks: what an observer may implement, in the order of a run.


@hookspec
def celstack_run_started(
    assembly: Assembly, decomposer: Decomposer, folder: Path | None, steps: int, step: int
) -> None:
    """Called once, before the first training step.

    Args:
        assembly: The parts and settings of the run.
        decomposer: The model, in training mode.
        folder: The run folder; None if nothing is written.
        steps: The number of the last training step.
        step: 0, or the step of the checkpoint that the run is resumed from.
    """


@hookspec
def celstack_phase_started(phase: ScheduledStage, step: int) -> None:
    """Called when a stage begins, or is resumed.

    Args:
        phase: The stage, its number and its steps; ``phase.title`` is its name.
        step: The number of steps done so far; more than ``phase.start`` when resumed, and
            ``phase.end`` if only the evaluation is left.
    """


@hookspec
def celstack_step_started(
    step: int, rates: Mapping[str, float], validations: Sequence[Validated]
) -> Mapping[str, float] | None:
    """Called before every training step, to see and to change its learning rates.

    What is returned should depend on the arguments alone: then a run that was stopped and
    resumed has the same rates. For example, half the rate of sprites from step 1000 on::

        def celstack_step_started(self, step, rates):
            return {"prototypes": rates["prototypes"] * (0.5 if step > 1000 else 1.0)}

    Args:
        step: The number of the step, from 1.
        rates: The learning rate of each parameter group, as the recipe and its schedule state
            it at this step. The groups are ``prototypes``, ``encoder`` and ``heads``, then
            those of parts that state a rate, as ``transforms.layer[0]`` and ``compositor``.
        validations: The scores of all evaluations during training so far, with their steps.

    Returns:
        The rates to change, by group; None to change nothing.
    """


@hookspec
def celstack_step_finished(
    step: int, loss: Loss, images: int, scene: Scene, rates: Mapping[str, float]
) -> None:
    """Called after every training step.

    Args:
        step: The number of the step, from 1.
        loss: Its terms, as tensors without gradients on the model's device. Reading their
            values synchronizes an accelerator.
        images: The number of images in the batch.
        scene: The scenes of the batch.
        rates: The learning rate of each parameter group.
    """


@hookspec
def celstack_health_checked(step: int, findings: Sequence[Finding]) -> None:
    """Called when the health check has findings, such as vanished weights or unused sprites.

    It runs every 500 steps and at the end of each stage; ``celstack show health`` explains
    all kinds of findings. Not called without findings.
    """


@hookspec
def celstack_sprites_reassigned(step: int, sprites: list[int]) -> None:
    """Called when unused sprites were replaced, by proposals of the selector or by copies."""


@hookspec
def celstack_checkpoint_saved(step: int) -> None:
    """Called after a checkpoint is written."""


@hookspec
def celstack_validated(step: int, scores: Mapping[str, float]) -> None:
    """Called after each evaluation during training, every ``validation.every`` steps."""


@hookspec
def celstack_training_ended(step: int, reason: str) -> None:
    """Called when training ends before its last step; the evaluation follows.

    Args:
        step: The last step.
        reason: What an observer gave to ``StopTraining``, or which score did not improve.
    """


@hookspec
def celstack_evaluated(step: int, scores: Mapping[str, float], decomposer: Decomposer) -> None:
    """Called after the final evaluation, with the score of each metric by its name."""


@hookspec
def celstack_run_finished(folder: Path | None, scores: Mapping[str, float]) -> None:
    """Called once, when all steps are done and all files are written."""


@hookspec
def celstack_run_stopped(step: int, reason: str) -> None:
    """Called instead of ``celstack_run_finished`` when the run ends early.

    Args:
        step: The last complete step.
        reason: The error, or ``"interrupted"``. After a second Ctrl-C it is
            ``celstack.INTERRUPTED_TWICE``: then return quickly.
    """

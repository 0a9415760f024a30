"""What a plugin may provide, and what an observer may hear: the table of contents.

A plugin module decorates functions of these names with ``celstack.hookimpl``. Those of
the first group return the classes a recipe may ``use``, by name, and do nothing else.
Those of the second group are methods of an observer; each takes what it wants of the
arguments.
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
    from celstack.recipe.schedule import Phase
    from celstack.runs.findings import Finding
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


# What an observer may hear.


@hookspec
def celstack_run_started(
    assembly: Assembly, decomposer: Decomposer, folder: Path | None, steps: int, step: int
) -> None:
    """Hear that a run begins, what will learn, where it writes, and for how many steps.

    ``step`` is 0, or that after which a run that was stopped goes on.
    """


@hookspec
def celstack_phase_started(phase: Phase, step: int) -> None:
    """Hear that a stage of the curriculum begins, or goes on, after so many steps."""


@hookspec
def celstack_step_finished(
    step: int, loss: Loss, images: int, scene: Scene, rates: Mapping[str, float]
) -> None:
    """Hear that a training step is done.

    With it come its loss, its number of images, their scenes, in which the sprites in use
    can be counted, and the learning rates by what learns.
    """


@hookspec
def celstack_health_checked(step: int, findings: Sequence[Finding]) -> None:
    """Called when the health check finds something: vanished weights, unused sprites ...

    It runs every 500 steps and at the end of each stage; ``celstack show health`` explains
    all kinds of findings. Not called when all is well.
    """


@hookspec
def celstack_sprites_reassigned(step: int, sprites: list[int]) -> None:
    """Hear that sprites nobody used have started again as copies of one that many use."""


@hookspec
def celstack_checkpoint_saved(step: int) -> None:
    """Hear that all that was learned is safe: if the run is stopped, it goes on from here."""


@hookspec
def celstack_evaluated(step: int, scores: Mapping[str, float], decomposer: Decomposer) -> None:
    """Hear the scores of the model as it is after so many steps."""


@hookspec
def celstack_run_finished(folder: Path | None, scores: Mapping[str, float]) -> None:
    """Hear that all steps are done and everything is written."""


@hookspec
def celstack_run_stopped(step: int, reason: str) -> None:
    """Hear that the run ends before its last step, and why.

    A user who was heard twice, ``celstack.signals.INTERRUPTED_TWICE``, waits for nothing.
    """

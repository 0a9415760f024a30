"""The training loop, readable top to bottom."""

from __future__ import annotations

from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import attrs

from celstack.data.availability import require_images
from celstack.data.loader import batch_size_at, shuffled_batches, to_device
from celstack.errors import CelstackError
from celstack.evaluation.metric_list import warn_of_failures
from celstack.evaluation.sprite_stats import SpriteStats
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly
from celstack.recipe.consistency import require_consistent
from celstack.recipe.schedule import schedule
from celstack.runs.directory import RunDirectory
from celstack.runs.findings import Finding
from celstack.runs.results import collect_results
from celstack.system import tune_allocator
from celstack.text import describe_error
from celstack.training import reassign
from celstack.training.callbacks import CallbackList
from celstack.training.distributed.engine import Engine
from celstack.training.distributed.setup import init_process_group
from celstack.training.distributed.stopping import StopCoordinator
from celstack.training.evaluate import score
from celstack.training.health import HealthCheck
from celstack.training.initialize import init_model
from celstack.training.optimizer import build_optimizer, rate_factors
from celstack.training.run_folder import load_planned, open_directory
from celstack.training.run_state import RunState
from celstack.training.steering import Steering, begin_stage, stages_left
from celstack.training.step import take_step
from celstack.training.validation import Validator


@attrs.frozen(eq=False)
class Trained:
    """The result of a run: the model in evaluation mode, its scores, and the run folder."""

    decomposer: Decomposer
    scores: dict[str, float]
    folder: Path | None
    ended: str = ""
    """Why training ended before its last step; empty if it did not."""


def run(
    assembly: Assembly | str | Path,
    directory: RunDirectory | str | Path | None = None,
    device: str = "cpu",
    resume: bool = False,
) -> Trained:
    """Train a model on a dataset, evaluate it, and write everything into a run folder.

    In one of several processes, as torchrun starts them, this is a distributed run: all ranks
    return the same model and scores, and rank 0 alone writes files and calls observers.

    Args:
        assembly: The parts and settings of the run; or the path or name of a recipe.
        directory: A run directory; or a folder, in which a new run folder is made; or None,
            to write nothing. With ``resume``, the folder is that of the run.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        resume: Continue a stopped run of the same assembly, with bit-identical results.

    Example:
        >>> trained = celstack.run(assembly, "runs")  # or run("smoke.toml", "runs")
        >>> print(trained.scores, trained.folder)
    """
    assembly, resolved = load_planned(assembly)
    require_consistent(assembly)
    if resume and directory is None:
        raise CelstackError("resume=True: needs the directory of the run to resume")
    require_images(assembly.dataset, assembly.batch_sizes())
    group = init_process_group(device)
    with ExitStack() as stack:
        with group.raise_on_all_ranks():
            own = None
            if group.is_main:
                own = open_directory(assembly, resolved, directory, resume)
            if own is not None:
                stack.enter_context(own.locked())
        return _run(assembly, own, Engine(group, assembly.training.precision), resume)


def _run(
    assembly: Assembly, directory: RunDirectory | None, engine: Engine, resume: bool
) -> Trained:
    tune_allocator()
    decomposer = engine.place_model(init_model(assembly)).train()
    health = HealthCheck(decomposer)
    optimizer = build_optimizer(decomposer, assembly.training)
    callbacks = CallbackList(assembly.observers if engine.group.is_main else [])
    state = RunState(decomposer, optimizer, directory, engine)
    if resume:
        state.resume()
    engine.broadcast_state(decomposer, optimizer)
    with StopCoordinator(engine.group) as stopping:
        scores = _train_and_evaluate(assembly, state, callbacks, stopping, health)
    callbacks.notify("celstack_run_finished", folder=state.folder, scores=scores)
    if directory:
        directory.finish()
    return Trained(decomposer, scores, state.folder, state.ended)


def _train_and_evaluate(
    assembly: Assembly,
    state: RunState,
    callbacks: CallbackList,
    stopping: StopCoordinator,
    health: HealthCheck,
) -> dict[str, float]:
    decomposer, directory = state.decomposer, state.directory
    try:
        _train(assembly, state, callbacks, stopping, health)
        decomposer.eval()
        stats = SpriteStats(decomposer.sprites.count)
        failures: dict[str, str] = {}
        scores = score(
            decomposer,
            assembly.dataset,
            assembly.metrics,
            assembly.evaluation,
            watch=lambda _: stopping.check(),
            stats=stats,
            engine=state.engine,
            failures=failures,
        )
        if state.engine.group.is_main:
            warn_of_failures(failures, state.folder)
        callbacks.notify(
            "celstack_evaluated", step=state.step, scores=scores, decomposer=decomposer
        )
        if directory:
            directory.begin_finish()
            directory.save_results(
                collect_results(decomposer, assembly, scores, stats, failures)
            )
    # Also for KeyboardInterrupt: save a checkpoint and notify observers before the run ends.
    except BaseException as error:
        state.save_on_exit(callbacks.stop_reason)
        interrupted = isinstance(error, KeyboardInterrupt)
        reason = (str(error) or "interrupted") if interrupted else describe_error(error)
        callbacks.notify("celstack_run_stopped", step=state.step, reason=reason)
        raise
    return scores


def _train(
    assembly: Assembly,
    state: RunState,
    callbacks: CallbackList,
    stopping: StopCoordinator,
    health: HealthCheck,
) -> None:
    decomposer, optimizer, engine = state.decomposer, state.optimizer, state.engine
    dataset, training, seed = assembly.dataset, assembly.training, assembly.seed
    count, group = dataset.count("train"), engine.group
    # Copied, like all parts of the model, because selectors may have state.
    stages = schedule(deepcopy(assembly.stages), count, training.batch_size)
    steps = stages[-1].end
    device = next(decomposer.parameters()).device
    batches = shuffled_batches(
        dataset,
        "train",
        training.batch_size,
        seed,
        training.workers,
        skip=state.step,
        part=group.local_slice,
    )
    callbacks.notify(
        "celstack_run_started",
        assembly=assembly,
        decomposer=decomposer,
        folder=state.folder,
        steps=steps,
        step=state.step,
    )
    validator = Validator(assembly, state, stages)
    steering = Steering(assembly, state, callbacks, stopping, steps)
    for scheduled in stages_left(stages, state, validator.is_due):
        stage = scheduled.stage
        begin_stage(decomposer, stage)
        state.stage = scheduled.number
        if scheduled.start == state.step:
            state.usage.reset()
            state.log(begins=scheduled.title)
        callbacks.notify("celstack_phase_started", phase=scheduled, step=state.step)
        # The run was stopped before its last step was evaluated, or before it could end.
        if validator.is_due or state.asked:
            if validator.is_due:
                validator.validate(callbacks, stopping)
            steering.end_step(save=False)
        while state.step < scheduled.end and not state.ended:
            # This rank's shard of the batch.
            images = to_device(next(batches), device).images
            group.begin_batch(batch_size_at(count, training.batch_size, state.step))
            rates = steering.set_rates(scheduled)
            # Observers are called after the step: an error in one cannot leave it half done.
            with state.atomic_step():
                if due := health.is_due(state.step + 1, scheduled):
                    health.remember(decomposer)
                loss, scene = take_step(
                    decomposer,
                    optimizer,
                    images,
                    training.mask_noise,
                    training.area_cost,
                    stage.teacher,
                    engine,
                )
                state.count_step(loss, scheduled.title)
                state.log_usage(scene)
                findings: list[Finding] = []
                if due:
                    counts = (
                        None if reassign.is_enabled(training, stage) else state.usage.counts
                    )
                    factors = rate_factors(optimizer, rates)
                    findings = health.check(
                        decomposer, scene, counts, scheduled, state.step, factors
                    )
                    state.log_findings(findings)
                reassigned = reassign.reassign_when_due(training, stage, state, images, scene)
            callbacks.notify(
                "celstack_step_finished",
                step=state.step,
                loss=loss,
                images=len(scene),
                scene=scene,
                rates=rates,
            )
            if findings:
                callbacks.notify("celstack_health_checked", step=state.step, findings=findings)
            if reassigned:
                callbacks.notify(
                    "celstack_sprites_reassigned", step=state.step, sprites=reassigned
                )
            if validator.is_due:
                validator.validate(callbacks, stopping)
            save = state.step % training.checkpoint_every == 0 or state.step in (1, steps)
            steering.end_step(save)
        if state.ended:
            break

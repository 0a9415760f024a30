"""The training loop, readable top to bottom."""

from __future__ import annotations

from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import attrs
import torch

from celstack.data.loader import batch_length, shuffled, to_device
from celstack.errors import CelstackError
from celstack.evaluation.sprite_stats import SpriteStats
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.consistency import demand_sense
from celstack.recipe.schedule import schedule
from celstack.runs.directory import RunDirectory
from celstack.runs.findings import Finding
from celstack.runs.results import collect_results
from celstack.system import keep_memory
from celstack.text import one_line
from celstack.training.callbacks import Audience
from celstack.training.distributed.engine import Engine
from celstack.training.distributed.setup import join
from celstack.training.distributed.stopping import Stopping
from celstack.training.evaluate import score
from celstack.training.health import HealthCheck
from celstack.training.optimizer import build_optimizer, set_rates
from celstack.training.reassign import reassign_when_due, reassigns
from celstack.training.run_state import Keeper
from celstack.training.step import take_step


@attrs.frozen(eq=False)
class Trained:
    """What a run leaves in memory: the model, its scores, and the folder with the rest."""

    decomposer: Decomposer
    scores: dict[str, float]
    folder: Path | None


def run(
    assembly: Assembly,
    directory: RunDirectory | str | Path | None = None,
    device: str = "cpu",
    resume: bool = False,
) -> Trained:
    """Learn sprites from images, score the result, and write it all into a directory.

    Without a directory nothing is written; a folder's name stands for a new directory in it.
    To ``resume`` is to go on, bit for bit, with a run of the same assembly that was stopped:
    the directory is then its own, and so is a folder's name.

    In one of several processes, as torchrun starts them, a run is that of all of them: each
    has the same model and scores in the end, and the first one alone writes and is watched.
    """
    demand_sense(assembly)
    if resume and directory is None:
        raise CelstackError("resume=True: say the directory of the run that is to go on")
    processes = join(device)
    with ExitStack() as stack:
        with processes.one_mind():
            own = _directory(assembly, directory, resume) if processes.first else None
            if own is not None:
                stack.enter_context(own.locked())
        return _run(assembly, own, Engine(processes, assembly.training.precision), resume)


def _directory(
    assembly: Assembly, directory: RunDirectory | str | Path | None, resume: bool
) -> RunDirectory | None:
    if directory is None or isinstance(directory, RunDirectory):
        return directory
    folder = Path(directory)
    if not resume:
        return RunDirectory.create(folder, assembly.dataset.name, assembly.seed)
    if not folder.is_dir():
        raise CelstackError(f"{folder}: there is no such folder")
    return RunDirectory(folder)


def _run(
    assembly: Assembly, directory: RunDirectory | None, engine: Engine, resume: bool
) -> Trained:
    keep_memory()
    decomposer = engine.fit(start(assembly)).train()
    health = HealthCheck(decomposer)
    optimizer = build_optimizer(decomposer, assembly.training)
    audience = Audience(assembly.observers if engine.processes.first else [])
    keeper = Keeper(decomposer, optimizer, directory, engine)
    if resume:
        keeper.resume()
    engine.follow(decomposer, optimizer)
    with Stopping(engine.processes) as stopping:
        scores = _learn_and_judge(assembly, keeper, audience, stopping, health)
    audience.tell("celstack_run_finished", folder=keeper.folder, scores=scores)
    return Trained(decomposer, scores, keeper.folder)


def _learn_and_judge(
    assembly: Assembly,
    keeper: Keeper,
    audience: Audience,
    stopping: Stopping,
    health: HealthCheck,
) -> dict[str, float]:
    decomposer, directory = keeper.decomposer, keeper.directory
    try:
        _learn(assembly, keeper, audience, stopping, health)
        decomposer.eval()
        census = SpriteStats(decomposer.sprites.count)
        scores = score(
            decomposer,
            assembly.dataset,
            assembly.metrics,
            assembly.evaluation,
            watch=lambda _: stopping.check(),
            census=census,
            engine=keeper.engine,
        )
        audience.tell(
            "celstack_evaluated", step=keeper.step, scores=scores, decomposer=decomposer
        )
        if directory:
            directory.save_results(collect_results(decomposer, assembly, scores, census))
    # Whatever ends a run early, what was learned is kept and the observers are told.
    except BaseException as error:
        keeper.save_if_sound()
        asked = isinstance(error, KeyboardInterrupt)
        reason = (str(error) or "interrupted") if asked else one_line(error)
        audience.tell("celstack_run_stopped", step=keeper.step, reason=reason)
        raise
    return scores


def start(assembly: Assembly) -> Decomposer:
    """Make a model that has learned nothing yet; the seed is all that its start depends on."""
    torch.manual_seed(assembly.seed)
    decomposer = assembly.decomposer()
    count = assembly.dataset.count("train")
    prototypes = [decomposer.sprites, decomposer.backgrounds]
    wanted = max(part.sample_size for part in prototypes if part is not None)
    sample = torch.randperm(count)[:wanted].tolist()
    decomposer.prepare(assembly.dataset.read("train", sample).images)
    return decomposer


def _learn(
    assembly: Assembly,
    keeper: Keeper,
    audience: Audience,
    stopping: Stopping,
    health: HealthCheck,
) -> None:
    decomposer, optimizer, engine = keeper.decomposer, keeper.optimizer, keeper.engine
    dataset, training, seed = assembly.dataset, assembly.training, assembly.seed
    count, processes = dataset.count("train"), engine.processes
    # Copies, as all parts of a model are: selectors may remember something.
    stages = deepcopy(assembly.stages)
    phases = schedule(stages, count, training.batch_size)
    steps = phases[-1].end
    device = next(decomposer.parameters()).device
    batches = shuffled(
        dataset,
        "train",
        training.batch_size,
        seed,
        training.workers,
        skip=keeper.step,
        part=processes.part,
    )
    audience.tell(
        "celstack_run_started",
        assembly=assembly,
        decomposer=decomposer,
        folder=keeper.folder,
        steps=steps,
        step=keeper.step,
    )
    for phase in phases:
        if phase.end <= keeper.step:
            continue  # it was finished before the run was resumed
        begin_stage(decomposer, phase.stage)
        keeper.stage = phase.number
        if phase.start == keeper.step:
            keeper.usage.reset()
            keeper.log(begins=phase.title)
        audience.tell("celstack_phase_started", phase=phase, step=keeper.step)
        while keeper.step < phase.end:
            # Of a batch, this process reads its own share.
            images = to_device(next(batches), device).images
            processes.divide(batch_length(count, training.batch_size, keeper.step))
            factor = phase.rate_factor(keeper.step)
            rates = set_rates(optimizer, training, phase.stage, factor)
            # Observers are told when a step is whole: whatever they do then costs none of it.
            with keeper.stepping():
                if due := health.is_due(keeper.step + 1, phase):
                    health.remember(decomposer)
                loss, scene = take_step(
                    decomposer,
                    optimizer,
                    images,
                    training.mask_noise,
                    training.area_cost,
                    phase.stage.teacher,
                    engine,
                )
                keeper.count_step(loss, phase.title)
                keeper.log_usage(scene)
                findings: list[Finding] = []
                if due:
                    counts = None if reassigns(training, phase.stage) else keeper.usage.counts
                    findings = health.check(decomposer, scene, counts, phase, keeper.step)
                    keeper.log_findings(findings)
                again = reassign_when_due(training, phase.stage, keeper, images, scene)
            audience.tell(
                "celstack_step_finished",
                step=keeper.step,
                loss=loss,
                images=len(scene),
                scene=scene,
                rates=rates,
            )
            if findings:
                audience.tell("celstack_health_checked", step=keeper.step, findings=findings)
            if again:
                audience.tell("celstack_sprites_reassigned", step=keeper.step, sprites=again)
            if keeper.step % training.checkpoint_every == 0 or keeper.step in (1, steps):
                keeper.save()
                engine.follow(decomposer, optimizer)
                if keeper.folder:
                    audience.tell("celstack_checkpoint_saved", step=keeper.step)
            stopping.check()


def begin_stage(decomposer: Decomposer, stage: Stage) -> None:
    """Set what is at work in a stage, and what is frozen."""
    decomposer.use(stage.selector)
    decomposer.activate(stage.transforms)
    decomposer.sprites_frozen = stage.freeze_sprites

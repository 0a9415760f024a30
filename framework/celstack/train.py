"""The training loop, readable top to bottom."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path

import attrs
import torch
from jaxtyping import Float
from torch import Tensor

from celstack.assembly import Assembly, Stage, Training
from celstack.audience import Audience
from celstack.census import Census
from celstack.curriculum import schedule
from celstack.device import find_device
from celstack.errors import CelstackError, one_line
from celstack.evaluate import score, to_device
from celstack.interfaces.selector import Selector
from celstack.keeper import Keeper
from celstack.loader import shuffled
from celstack.memory import keep_memory
from celstack.model import Decomposer
from celstack.objective import Loss, objective
from celstack.optimizer import build_optimizer, set_rates
from celstack.reassign import reassign_unused
from celstack.rundir import RunDirectory
from celstack.scene import Scene
from celstack.sense import demand_sense
from celstack.teaching import take_lesson

SAMPLE = 100
"""How many images parts may look at before they start."""


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
    """
    demand_sense(assembly)
    if resume and directory is None:
        raise CelstackError("resume=True: say the directory of the run that is to go on")
    if isinstance(directory, str | Path):
        directory = _directory(assembly, Path(directory), resume)
    with directory.held() if directory else nullcontext():
        return _run(assembly, directory, device, resume)


def _directory(assembly: Assembly, folder: Path, resume: bool) -> RunDirectory:
    if not resume:
        return RunDirectory.create(folder, assembly.dataset.name, assembly.seed)
    if not folder.is_dir():
        raise CelstackError(f"{folder}: there is no such folder")
    return RunDirectory(folder)


def _run(
    assembly: Assembly, directory: RunDirectory | None, device: str, resume: bool
) -> Trained:
    keep_memory()
    decomposer = start(assembly).to(find_device(device)).train()
    optimizer = build_optimizer(decomposer, assembly.training)
    audience = Audience(assembly.observers)
    keeper = Keeper(decomposer, optimizer, directory)
    if resume:
        keeper.resume()
    try:
        _learn(assembly, decomposer, optimizer, audience, keeper)
        decomposer.eval()
        census = Census(decomposer.sprites.count)
        scores = score(
            decomposer, assembly.dataset, assembly.metrics, assembly.evaluation, census=census
        )
        audience.tell(
            "celstack_evaluated", step=keeper.step, scores=scores, decomposer=decomposer
        )
        if directory:
            directory.save_census(census, assembly, scores)
            directory.save_results(decomposer, assembly, scores)
    # Whatever ends a run early, what was learned is kept and the observers are told.
    except BaseException as error:
        keeper.save_if_sound()
        asked = isinstance(error, KeyboardInterrupt)
        reason = (str(error) or "interrupted") if asked else one_line(error)
        audience.tell("celstack_run_stopped", step=keeper.step, reason=reason)
        raise
    audience.tell("celstack_run_finished", folder=keeper.folder, scores=scores)
    return Trained(decomposer, scores, keeper.folder)


def start(assembly: Assembly) -> Decomposer:
    """Make a model that has learned nothing yet; the seed is all that its start depends on."""
    torch.manual_seed(assembly.seed)
    decomposer = assembly.decomposer()
    count = assembly.dataset.count("train")
    sample = torch.randperm(count)[:SAMPLE].tolist()
    decomposer.prepare(assembly.dataset.read("train", sample).images)
    return decomposer


def _learn(
    assembly: Assembly,
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    audience: Audience,
    keeper: Keeper,
) -> None:
    dataset, training, seed = assembly.dataset, assembly.training, assembly.seed
    # Copies, as all parts of a model are: selectors may remember something.
    stages = deepcopy(assembly.stages)
    phases = schedule(stages, dataset.count("train"), training.batch_size)
    steps = phases[-1].end
    device = next(decomposer.parameters()).device
    batches = shuffled(
        dataset, "train", training.batch_size, seed, training.workers, skip=keeper.step
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
        rates = set_rates(optimizer, training, phase.stage)
        if phase.start == keeper.step:
            keeper.usage.reset()
            keeper.log(begins=phase.title)
        audience.tell("celstack_phase_started", phase=phase, step=keeper.step)
        while keeper.step < phase.end:
            images = to_device(next(batches), device).images
            # Observers are told when a step is whole: whatever they do then costs none of it.
            with keeper.stepping():
                loss, scene = take_step(
                    decomposer,
                    optimizer,
                    images,
                    training.mask_noise,
                    training.area_cost,
                    phase.stage.teacher,
                )
                keeper.count_step(loss, phase.title)
                keeper.log_usage(scene)
                again = _reassign(training, phase.stage, keeper, images, scene)
            audience.tell(
                "celstack_step_finished",
                step=keeper.step,
                loss=loss,
                images=len(images),
                scene=scene,
                rates=rates,
            )
            if again:
                audience.tell("celstack_sprites_reassigned", step=keeper.step, sprites=again)
            if keeper.step % training.checkpoint_every == 0 or keeper.step in (1, steps):
                keeper.save()
                if keeper.folder:
                    audience.tell("celstack_checkpoint_saved", step=keeper.step)


def _reassign(
    training: Training,
    stage: Stage,
    keeper: Keeper,
    images: Float[Tensor, "B C H W"],
    scene: Scene,
) -> list[int]:
    """Count which sprites were used; when it is time, start those again that nobody uses."""
    keeper.usage.add(scene.sprite)
    every = training.reassign_every
    due = every and keeper.step % every == 0
    if not due or not stage.reassign or stage.teacher is not None:
        return []
    last, below = (images, scene), training.reassign_below
    again = reassign_unused(keeper.decomposer, keeper.optimizer, keeper.usage, below, last)
    if again:
        keeper.log(reassigned=again)
    return again


def begin_stage(decomposer: Decomposer, stage: Stage) -> None:
    """Set what is at work in a stage, and what is frozen."""
    decomposer.use(stage.selector)
    decomposer.activate(stage.transforms)
    decomposer.sprites_frozen = stage.freeze_sprites


def take_step(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    images: Float[Tensor, "B C H W"],
    mask_noise: float,
    area_cost: float = 0.0,
    teacher: Selector | None = None,
) -> tuple[Loss, Scene]:
    """Explain a batch, compare, learn. A loss that is not a number teaches nothing."""
    if teacher is not None:
        loss, scene = take_lesson(decomposer, images, teacher)
    else:
        noise = decomposer.draw_noise(mask_noise)
        scene = decomposer.explain(images, noise)
        again, masks = decomposer.reconstruct(scene, noise)
        loss = objective(images, scene, again, masks, decomposer.price or 0.0, area_cost)
    # Asking an accelerator would make it wait; there the log finds out, a little later.
    if images.device.type != "cpu" or torch.isfinite(loss.total):
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
    return loss.detach(), scene

"""The training loop, readable top to bottom."""

from __future__ import annotations

from pathlib import Path

import attrs
import torch

from celstack.assembly import Assembly, Stage, Training
from celstack.audience import Audience
from celstack.curriculum import Phase, schedule
from celstack.errors import RunFailedError
from celstack.evaluate import score, to_device
from celstack.interfaces.encoder import Encoder
from celstack.loader import shuffled
from celstack.model import Decomposer
from celstack.objective import Loss, objective
from celstack.reassign import Usage, reassign_unused
from celstack.rundir import RunDirectory
from celstack.scene import Scene

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
    directory: RunDirectory | None = None,
    device: str | torch.device = "cpu",
) -> Trained:
    """Learn sprites from images, score the result, and write it all into a directory."""
    decomposer = start(assembly).to(device)
    decomposer.train()
    training = assembly.training
    optimizer = build_optimizer(decomposer, training)
    usage = Usage(decomposer.sprites.count)
    phases = _schedule(assembly)
    audience = Audience(assembly.observers)
    folder = directory.folder if directory else None
    audience.tell(
        "celstack_run_started", assembly=assembly, folder=folder, steps=phases[-1].end
    )
    step = 0
    try:
        batches = shuffled(
            assembly.dataset,
            "train",
            training.batch_size,
            assembly.seed,
            training.workers,
        )
        for phase in phases:
            begin_phase(decomposer, optimizer, training, phase.stage)
            audience.tell("celstack_phase_started", phase=phase, step=step)
            while step < phase.end:
                batch = to_device(next(batches), torch.device(device))
                loss, scene = take_step(decomposer, optimizer, batch.images, training)
                step += 1
                check_finite(loss, step)
                usage.add(scene.sprite)
                if training.reassign_every and step % training.reassign_every == 0:
                    reassign_unused(decomposer, optimizer, usage, training.reassign_below)
                if directory:
                    directory.log(step, phase, loss)
                audience.tell("celstack_step_finished", step=step, loss=loss, images=len(batch))
    except (KeyboardInterrupt, RunFailedError) as error:
        reason = str(error) or "interrupted"
        if directory and step:
            directory.save_checkpoint(decomposer, optimizer, step)
        audience.tell("celstack_run_stopped", step=step, reason=reason)
        raise
    if directory:
        directory.save_checkpoint(decomposer, optimizer, step)
    scores = score(decomposer, assembly.dataset, assembly.metrics, assembly.evaluation)
    audience.tell("celstack_evaluated", step=step, scores=scores, decomposer=decomposer)
    if directory:
        directory.save_results(decomposer, assembly, scores)
    audience.tell("celstack_run_finished", folder=folder, scores=scores)
    return Trained(decomposer.eval(), scores, folder)


def start(assembly: Assembly) -> Decomposer:
    """Make a model that has learned nothing yet; the seed is all that its start depends on."""
    torch.manual_seed(assembly.seed)
    decomposer = assembly.decomposer()
    count = assembly.dataset.count("train")
    sample = torch.randperm(count)[:SAMPLE].tolist()
    decomposer.prepare(assembly.dataset.read("train", sample).images)
    return decomposer


def build_optimizer(decomposer: Decomposer, training: Training) -> torch.optim.Optimizer:
    """Make Adam with a rate of its own for prototypes, encoder and heads."""
    prototypes = [*decomposer.sprites.parameters()]
    if decomposer.backgrounds is not None:
        prototypes += decomposer.backgrounds.parameters()
    encoder: dict[torch.nn.Parameter, None] = {}
    heads: dict[torch.nn.Parameter, None] = {}
    if decomposer.predictor is not None:
        parts = decomposer.predictor.modules()
        encoder = {
            p: None for part in parts if isinstance(part, Encoder) for p in part.parameters()
        }
        heads = {p: None for p in decomposer.predictor.parameters() if p not in encoder}
    groups = [
        {"name": "prototypes", "params": prototypes, "lr": training.prototype_rate},
        {"name": "encoder", "params": list(encoder), "lr": training.encoder_rate},
        {"name": "heads", "params": list(heads), "lr": training.head_rate},
    ]
    for group in groups[1:]:
        group["weight_decay"] = training.weight_decay
    return torch.optim.Adam((group for group in groups if group["params"]), fused=True)


def begin_phase(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    training: Training,
    stage: Stage,
) -> None:
    """Set what a stage changes: transforms at work, frozen sprites, learning rates."""
    decomposer.activate(stage.transforms)
    decomposer.sprites_frozen = stage.freeze_sprites
    rates = {
        "prototypes": training.prototype_rate * stage.prototype_factor,
        "encoder": training.encoder_rate * stage.network_factor,
        "heads": training.head_rate * stage.network_factor,
    }
    for group in optimizer.param_groups:
        group["lr"] = rates[group["name"]]


def take_step(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    training: Training,
) -> tuple[Loss, Scene]:
    """Explain a batch, compare, learn."""
    noise = decomposer.draw_noise(training.mask_noise)
    scene = decomposer.explain(images, noise)
    rendering = decomposer.render(scene, noise)
    loss = objective(images, scene, rendering, decomposer.selector.empty_cost or 0.0)
    optimizer.zero_grad()
    loss.total.backward()
    optimizer.step()
    return loss.detach(), scene


def check_finite(loss: Loss, step: int) -> None:
    """Stop at the first loss that is not a number, and name the term."""
    for field in attrs.fields(Loss):
        value = getattr(loss, field.name)
        if not torch.isfinite(value):
            raise RunFailedError(
                f"step {step}: the loss is {value.item()} in its term '{field.name}'; "
                "try lower learning rates"
            )


def _schedule(assembly: Assembly) -> list[Phase]:
    images = assembly.dataset.count("train")
    return schedule(assembly.stages, images, assembly.training.batch_size)

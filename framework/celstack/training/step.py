"""One training step: explain a batch, compare, learn."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss, objective
from celstack.scene import Scene
from celstack.training.distillation import take_lesson
from celstack.training.distributed.engine import Engine


def take_step(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    images: Float[Tensor, "B C H W"],
    mask_noise: float,
    area_cost: float = 0.0,
    teacher: Selector | None = None,
    engine: Engine | None = None,
) -> tuple[Loss, Scene]:
    """Explain a batch, compare, learn. A loss that is not a number teaches nothing.

    The images are this process's own; loss and scenes are those of the whole batch.
    """
    engine = engine or Engine()
    if teacher is not None:
        loss, scene = take_lesson(decomposer, images, teacher, engine.processes.mean_count)
    else:
        noise = decomposer.draw_noise(mask_noise)
        scene = decomposer.explain(images, noise)
        again, masks = decomposer.reconstruct(scene, noise)
        loss = objective(images, scene, again, masks, decomposer.price or 0.0, area_cost)
    own = engine.share(loss)
    loss = engine.total(own)
    # Asking an accelerator would make it wait; there the log finds out, a little later.
    if images.device.type != "cpu" or torch.isfinite(loss.total):
        engine.learn(own.total, optimizer)
    return loss, engine.whole(scene)

"""One training step: explain a batch, compute the loss, update the parameters."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.interfaces.selector import Selector
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss, objective
from celstack.scene import Scene
from celstack.training.distillation import distillation_step
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
    """Explain a batch, compute its loss, and update the parameters unless it is not finite.

    Args:
        decomposer: The model, in training mode.
        optimizer: Holds all parameters of the model that are trained.
        images: This rank's shard of the batch.
        mask_noise: The amplitude of the uniform noise that is added to masks.
        area_cost: The price of a layer that is opaque everywhere.
        teacher: A selector whose scenes the predictor is trained to reproduce; without one,
            the model is trained to reconstruct the images.
        engine: Where and in what precision to compute; by default one process, 32 bits.

    Returns:
        The loss, without gradients, and the scenes of the global batch.
    """
    engine = engine or Engine()
    if teacher is not None:
        count = engine.group.mean_denominator
        loss, scene = distillation_step(decomposer, images, teacher, count)
    else:
        noise = decomposer.draw_noise(mask_noise)
        scene = decomposer.explain(images, noise)
        again, masks = decomposer.reconstruct(scene, noise)
        loss = objective(images, scene, again, masks, decomposer.price or 0.0, area_cost)
    local = engine.scale_loss(loss)
    loss = engine.reduce_loss(local)
    # On an accelerator this check would synchronize; there RunState finds it a little later.
    if images.device.type != "cpu" or torch.isfinite(loss.total):
        engine.backward_step(local.total, optimizer)
    return loss, engine.gather_scene(scene)

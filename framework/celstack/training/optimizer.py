"""The optimizer: Adam, with separate learning rates for prototypes, encoder and heads."""

from __future__ import annotations

import torch
from torch import nn

from celstack.interfaces.encoder import Encoder
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Stage, Training


def build_optimizer(decomposer: Decomposer, training: Training) -> torch.optim.Optimizer:
    """Build Adam with a parameter group per learning rate; only networks have weight decay.

    The groups are called ``prototypes``, ``encoder`` and ``heads``; empty ones are left out.
    """
    prototypes = [*decomposer.sprites.parameters()]
    if decomposer.backgrounds is not None:
        prototypes += decomposer.backgrounds.parameters()
    encoder, heads = _networks(decomposer)
    decay = training.weight_decay
    groups = [
        {"name": "prototypes", "params": prototypes, "lr": training.prototype_rate},
        {
            "name": "encoder",
            "params": encoder,
            "lr": training.encoder_rate,
            "weight_decay": decay,
        },
        {"name": "heads", "params": heads, "lr": training.head_rate, "weight_decay": decay},
    ]
    used = (group for group in groups if group["params"])
    return torch.optim.Adam(
        used,
        betas=training.betas,
        fused=True,
        decoupled_weight_decay=training.decay == "decoupled",
    )


def set_learning_rates(
    optimizer: torch.optim.Optimizer, training: Training, stage: Stage, factor: float = 1.0
) -> dict[str, float]:
    """Set the learning rates of a stage, and return them by the name of their group.

    Args:
        optimizer: What ``build_optimizer`` returned.
        training: The base rates.
        stage: The factors for prototypes and networks.
        factor: What the schedule multiplies all rates by.
    """
    rates = {
        "prototypes": training.prototype_rate * stage.prototype_factor * factor,
        "encoder": training.encoder_rate * stage.network_factor * factor,
        "heads": training.head_rate * stage.network_factor * factor,
    }
    for group in optimizer.param_groups:
        group["lr"] = rates[group["name"]]
    return {group["name"]: group["lr"] for group in optimizer.param_groups}


def _networks(decomposer: Decomposer) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the parameters of encoders, and all others of the predictor."""
    if decomposer.predictor is None:
        return [], []
    encoders = [part for part in decomposer.predictor.modules() if isinstance(part, Encoder)]
    encoder = dict.fromkeys(p for part in encoders for p in part.parameters())
    heads = [p for p in decomposer.predictor.parameters() if p not in encoder]
    return list(encoder), heads

"""The optimizer: Adam, with a learning rate for each parameter group of the model."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from celstack.errors import CelstackError
from celstack.interfaces.part import Part
from celstack.model.decomposer import Decomposer
from celstack.model.parameter_groups import find_untrainable, parameter_groups
from celstack.recipe.assembly import Stage, Training


def build_optimizer(decomposer: Decomposer, training: Training) -> torch.optim.Optimizer:
    """Build Adam with the parameter groups of a model; only networks have weight decay.

    Raises:
        CelstackError: The model has a parameter that is in no group and would never learn.
    """
    selectors: dict[str, Part] = {"selector": decomposer.selector}
    for place, text in find_untrainable(decomposer, selectors):
        raise CelstackError(f"{place}: {text}")
    recipe_rates = {
        "prototypes": training.prototype_rate,
        "encoder": training.encoder_rate,
        "heads": training.head_rate,
    }
    groups = []
    for name, group in parameter_groups(decomposer).items():
        rate = recipe_rates[name] if group.rate is None else group.rate
        decay = training.weight_decay if group.network else 0.0
        groups.append(
            {
                "name": name,
                "params": group.parameters,
                "lr": rate,
                "initial_lr": rate,
                "network": group.network,
                "weight_decay": decay,
            }
        )
    return torch.optim.Adam(
        groups,
        betas=training.betas,
        fused=True,
        decoupled_weight_decay=training.decay == "decoupled",
    )


def set_learning_rates(
    optimizer: torch.optim.Optimizer, stage: Stage, factor: float = 1.0
) -> dict[str, float]:
    """Set the learning rates of a stage, and return them by the name of their group.

    Args:
        optimizer: What ``build_optimizer`` returned.
        stage: The factors for prototypes and networks.
        factor: What the schedule multiplies all rates by.
    """
    for group in optimizer.param_groups:
        own = stage.network_factor if group["network"] else stage.prototype_factor
        group["lr"] = group["initial_lr"] * own * factor
    return {group["name"]: group["lr"] for group in optimizer.param_groups}


def rate_factors(
    optimizer: torch.optim.Optimizer, rates: Mapping[str, float]
) -> dict[int, float]:
    """Return by how much the rates of a step differ from the recipe's, by parameter id.

    Args:
        optimizer: What ``build_optimizer`` returned.
        rates: The learning rates of the step, by the name of their group.
    """
    factors: dict[int, float] = {}
    for group in optimizer.param_groups:
        full = group["initial_lr"]
        factor = rates.get(group["name"], full) / full if full else 0.0
        factors |= {id(parameter): factor for parameter in group["params"]}
    return factors

"""Whether what a checkpoint holds fits: what does not is refused before anything uses it.

Some of torch's kernels do not look at sizes themselves, and would read and write elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from celstack.text import format_value

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}
"""What Adam knows of each parameter: how often it was moved, and two tensors of its shape."""


def misfit(value: Any, like: Tensor) -> str:
    """Say what a value is instead of a tensor of this shape and type; nothing if it fits."""
    if not isinstance(value, Tensor):
        return f"{format_value(value)}, not a tensor"
    if value.layout != torch.strided or value.is_meta or value.is_quantized:
        return "a tensor without plain numbers"
    if value.shape != like.shape:
        return f"{list(value.shape)}, not {list(like.shape)}"
    return f"{value.dtype}, not {like.dtype}" if value.dtype != like.dtype else ""


def odd_weight(wanted: Mapping[str, Tensor], weights: Mapping[Any, Any]) -> list[str]:
    """Say which weights a model misses, does not know, or cannot take."""
    odd = [f"{name} is missing" for name in wanted if name not in weights]
    odd += [f"{_called(n)} is not in the recipe's model" for n in weights if n not in wanted]
    both = [name for name in wanted if name in weights]
    wrong = {name: misfit(weights[name], wanted[name]) for name in both}
    return odd + [f"{name} is {text}" for name, text in wrong.items() if text]


def fitted_moments(
    optimizer: torch.optim.Optimizer, state: Mapping[Any, Any]
) -> dict[str, Any]:
    """Return the state of Adam with this optimiser's own settings, or raise ValueError.

    Settings are the recipe's; a checkpoint only says what was learned.
    """
    own = optimizer.state_dict()["param_groups"]
    groups, moments = state.get("param_groups"), state.get("state")
    if not isinstance(groups, list) or not isinstance(moments, dict):
        raise ValueError("its optimiser is none")
    if [_about(group) for group in groups] != [_about(group) for group in own]:
        raise ValueError("its optimiser has other parameters")
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for number, known in moments.items():
        if type(number) is not int or not 0 <= number < len(weights):
            raise ValueError(f"its optimiser knows a parameter {format_value(number)}")
        if not isinstance(known, dict) or known.keys() != MOMENTS:
            raise ValueError(f"its optimiser does not know all of parameter {number}")
        for name, value in known.items():
            like = torch.zeros(()) if name == "step" else weights[number]
            if text := misfit(value, like):
                raise ValueError(f"{name} of parameter {number} is {text}")
    return {"state": moments, "param_groups": own}


def _about(group: Any) -> Any:
    return (group.get("name"), group.get("params")) if isinstance(group, dict) else None


def _called(name: Any) -> str:
    plain = isinstance(name, str) and name.isprintable() and len(name) < 100
    return str(name) if plain else format_value(name)

"""Validation of checkpoints: shapes and types are checked before anything is loaded.

Some of torch's kernels do not check sizes, and would read and write out of bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from celstack.text import format_value

ADAM_STATE_KEYS = {"step", "exp_avg", "exp_avg_sq"}
"""Adam's state of a parameter: the number of steps, and two tensors of its shape."""


def tensor_mismatch(value: Any, like: Tensor) -> str:
    """Describe how a value differs in shape or type from a tensor; empty if it does not."""
    if not isinstance(value, Tensor):
        return f"{format_value(value)}, not a tensor"
    if value.layout != torch.strided or value.is_meta or value.is_quantized:
        return "not a dense tensor"
    if value.shape != like.shape:
        return f"{list(value.shape)}, not {list(like.shape)}"
    return f"{value.dtype}, not {like.dtype}" if value.dtype != like.dtype else ""


def state_dict_mismatches(
    wanted: Mapping[str, Tensor], weights: Mapping[Any, Any]
) -> list[str]:
    """List weights that are missing, unexpected, or of the wrong shape or type."""
    odd = [f"{name} is missing" for name in wanted if name not in weights]
    odd += [
        f"{_shown_name(n)} is not in the recipe's model" for n in weights if n not in wanted
    ]
    both = [name for name in wanted if name in weights]
    wrong = {name: tensor_mismatch(weights[name], wanted[name]) for name in both}
    return odd + [f"{name} is {text}" for name, text in wrong.items() if text]


def checked_optimizer_state(
    optimizer: torch.optim.Optimizer, state: Mapping[Any, Any]
) -> dict[str, Any]:
    """Return a state_dict for Adam with this optimizer's own settings, or raise ValueError.

    Settings such as learning rates come from the recipe, moments from the checkpoint.
    """
    own = optimizer.state_dict()["param_groups"]
    groups, moments = state.get("param_groups"), state.get("state")
    if not isinstance(groups, list) or not isinstance(moments, dict):
        raise ValueError("its optimizer has no state")
    if [_name_and_params(group) for group in groups] != [
        _name_and_params(group) for group in own
    ]:
        raise ValueError("its optimizer has other parameters")
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for number, known in moments.items():
        if type(number) is not int or not 0 <= number < len(weights):
            raise ValueError(f"its optimizer has an unknown parameter {format_value(number)}")
        if not isinstance(known, dict) or known.keys() != ADAM_STATE_KEYS:
            raise ValueError(f"its optimizer has an incomplete state of parameter {number}")
        for name, value in known.items():
            like = torch.zeros(()) if name == "step" else weights[number]
            if text := tensor_mismatch(value, like):
                raise ValueError(f"{name} of parameter {number} is {text}")
    return {"state": moments, "param_groups": own}


def _name_and_params(group: Any) -> Any:
    return (group.get("name"), group.get("params")) if isinstance(group, dict) else None


def _shown_name(name: Any) -> str:
    plain = isinstance(name, str) and name.isprintable() and len(name) < 100
    return str(name) if plain else format_value(name)

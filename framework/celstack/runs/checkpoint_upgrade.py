"""Conversion of checkpoints of earlier versions to the layout of this version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from celstack.interfaces.encoder import Encoder
from celstack.interfaces.part import Part
from celstack.model.decomposer import Decomposer

GROUPS_OF_0_1_0 = ("prototypes", "encoder", "heads")
"""The parameter groups of the optimizer that every version has."""


def upgrade_weights(decomposer: Decomposer, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Let every part convert weights that an earlier version of it has written.

    Weights that belong to no part stay as they are, and are refused when they are loaded.
    """
    upgraded = dict(weights)
    for place, part in decomposer.named_modules():
        if not isinstance(part, Part):
            continue
        prefix = f"{place}."
        own = {
            name.removeprefix(prefix): weight
            for name, weight in upgraded.items()
            if isinstance(name, str) and name.startswith(prefix)
        }
        converted = part.upgrade_weights(own)
        if converted is not own:
            for name in own:
                del upgraded[f"{prefix}{name}"]
            upgraded |= {f"{prefix}{name}": weight for name, weight in converted.items()}
    return upgraded


def upgrade_moments(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    weights: Mapping[str, Tensor],
    state: dict[str, Any],
) -> dict[str, Any]:
    """Convert the optimizer's state if ``weights`` have to be upgraded, else return it.

    A state that cannot be converted is returned as it is, and is refused when it is loaded.
    """
    state = _with_new_groups(optimizer, state)
    upgraded = upgrade_weights(decomposer, weights)
    if all(upgraded.get(name) is weight for name, weight in weights.items()):
        return state
    try:
        return _converted(decomposer, optimizer, weights, state)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError):
        return state


def _with_new_groups(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """Add the groups of transforms and compositors, which did not learn in earlier versions."""
    try:
        old = state["param_groups"]
        number = sum(len(group["params"]) for group in old)
        added = []
        for group in optimizer.param_groups[len(old) :]:
            count = len(group["params"])
            added.append({"name": group["name"], "params": [*range(number, number + count)]})
            number += count
        unchanged = any(group["name"] in GROUPS_OF_0_1_0 for group in added)
        return state if unchanged else {**state, "param_groups": [*old, *added]}
    except (LookupError, TypeError, AttributeError):
        return state  # damaged, and refused when it is loaded


def _converted(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    weights: Mapping[str, Tensor],
    state: dict[str, Any],
) -> dict[str, Any]:
    names = {id(p): name for name, p in decomposer.named_parameters()}
    encoders = [n for n, part in decomposer.named_modules() if isinstance(part, Encoder)]
    moments: dict[int, dict[str, Tensor]] = {}
    groups, number = [], 0
    for group, old in zip(optimizer.param_groups, state["param_groups"], strict=True):
        now = [names[id(p)] for p in group["params"]]
        before = _heads(weights, encoders) if group["name"] == "heads" else now
        known = {
            name: state["state"][index]
            for name, index in zip(before, old["params"], strict=True)
            if index in state["state"]
        }
        own = known if before is now else _converted_group(decomposer, known, now)
        indices = [*range(number, number + len(now))]
        moments |= {i: own[n] for i, n in zip(indices, now, strict=True) if n in own}
        groups.append({**old, "params": indices})
        number += len(now)
    return {"state": moments, "param_groups": groups}


def _heads(weights: Mapping[str, Tensor], encoders: list[str]) -> list[str]:
    """List the predictor's own weights, without encoders, in the order of their creation."""
    inside = tuple(f"{name}." for name in encoders)
    return [n for n in weights if n.startswith("predictor.") and not n.startswith(inside)]


def _converted_group(
    decomposer: Decomposer, known: dict[str, dict[str, Tensor]], now: list[str]
) -> dict[str, dict[str, Tensor]]:
    if not known:
        return {}
    step = max(moment["step"] for moment in known.values())
    wanted = dict(decomposer.named_parameters())
    parts = {
        kind: upgrade_weights(decomposer, {n: m[kind] for n, m in known.items()})
        for kind in ("exp_avg", "exp_avg_sq")
    }
    # Check shapes before copying: a small file can describe a tensor larger than memory.
    found = [n for n in now if all(_fits(part.get(n), wanted[n]) for part in parts.values())]
    return {
        # Copies, because transforms that shared a head must not share its state.
        name: {"step": step.clone(), **{kind: parts[kind][name].clone() for kind in parts}}
        for name in found
    }


def _fits(moment: Any, weight: Tensor) -> bool:
    return isinstance(moment, Tensor) and moment.shape == weight.shape

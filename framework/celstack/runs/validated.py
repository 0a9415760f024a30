"""Validated: the scores of an evaluation during training, as checkpoints store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.json_checks import has_shape


class Validated(NamedTuple):
    """The scores after ``step`` steps, by the names of the metrics."""

    step: int
    scores: dict[str, float]


def pack_validations(validations: Sequence[Validated]) -> list[dict[str, Any]]:
    """Return validations in a form that a checkpoint can hold."""
    return [{"step": step, "scores": dict(scores)} for step, scores in validations]


def unpack_validations(state: Mapping[str, Any], path: Path) -> list[Validated]:
    """Return the validations of a checkpoint; ``path`` is for the message about damage."""
    packed = state.get("validations", [])  # runs of 0.1.0 have none
    shape = list[dict[str, object]]
    if not has_shape(packed, shape) or not all(
        has_shape(one.get("step"), int) and _are_scores(one.get("scores")) for one in packed
    ):
        raise CelstackError(f"{path}: cannot resume: missing or invalid: validations")
    return [Validated(one["step"], one["scores"]) for one in packed]


def _are_scores(value: Any) -> bool:
    # NaN is a score: that of a metric on images that it says nothing about.
    items = value.items() if isinstance(value, dict) else [(None, None)]
    return all(type(name) is str and type(score) is float for name, score in items)


def unpack_reason(state: Mapping[str, Any], key: str, path: Path) -> str:
    """Return why training had ended early, or was to, in a checkpoint; empty if it had not."""
    reason = state.get(key, "")
    if not isinstance(reason, str):
        raise CelstackError(f"{path}: cannot resume: missing or invalid: {key}")
    return reason

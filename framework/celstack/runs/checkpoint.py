"""Checkpoints: pack, read, check and restore the state of a run, bit for bit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import torch
from torch import Tensor

from celstack.data.batch_checks import image_shape_problem
from celstack.errors import CelstackError
from celstack.model.decomposer import Decomposer
from celstack.runs.checkpoint_upgrade import upgrade_moments, upgrade_weights
from celstack.runs.checkpoint_validation import (
    checked_optimizer_state,
    state_dict_mismatches,
    tensor_mismatch,
)
from celstack.runs.recipe_diff import MAY_CHANGE_ON_RESUME, recipe_differences
from celstack.text import describe_error, format_value, printable

MODEL_KEYS = {
    "version": str,
    "step": int,
    "stage": int,
    "sprites_frozen": bool,
    "model": dict,
    "optimizer": dict,
}
"""The entries that every checkpoint has, with their types."""
RESUME_KEYS = {"recipe": str, "usage": Tensor, "random": dict, "torch": str, "log": int}
"""The entries that are needed to resume, besides."""
MAX_IMAGE_VALUES = 2**24
"""A checkpoint with a larger image shape is damaged; images of it would exhaust the memory."""
VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")


def pack_checkpoint(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    usage: Tensor,
    position: tuple[int, int],
    recipe: str,
) -> dict[str, Any]:
    """Return the state of a run as a dictionary for ``torch.save``.

    Args:
        decomposer: The model.
        optimizer: Its optimizer.
        usage: How often each sprite was used since the last reassignment.
        position: The number of finished steps, and the stage, counted from 1.
        recipe: The resolved recipe as JSON; empty for a run without a recipe.
    """
    step, stage = position
    device = next(decomposer.parameters()).device
    return {
        "version": version("celstack"),
        "torch": str(torch.__version__),
        "recipe": recipe,
        "step": step,
        "stage": stage,
        # Stages set this flag, and it is not part of the state_dict.
        "sprites_frozen": decomposer.sprites_frozen,
        # Without it, a run could only be opened where the files of its dataset are.
        "image_shape": [decomposer.channels, *decomposer.canvas],
        "model": decomposer.state_dict(),
        "optimizer": optimizer.state_dict(),
        "usage": usage,
        "random": _random_state(device),
    }


def restore_checkpoint(
    state: dict[str, Any],
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    usage: Tensor,
    folder: Path,
) -> None:
    """Load a checkpoint into model, optimizer, usage counts and random generators."""
    load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    try:
        moments = upgrade_moments(decomposer, optimizer, state["model"], state["optimizer"])
        optimizer.load_state_dict(checked_optimizer_state(optimizer, moments))
        if text := tensor_mismatch(state["usage"], usage):
            raise ValueError(f"usage is {text}")
        usage.copy_(state["usage"])
        _set_random_state(state["random"], next(decomposer.parameters()).device)
    except (ValueError, RuntimeError, LookupError, TypeError) as error:
        reason = describe_error(error)[:200]
        raise CelstackError(
            f"{folder}: checkpoint.pt does not match the recipe: {reason}"
        ) from error


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read and check a checkpoint, on the CPU; no code in it is ever executed."""
    if not path.is_file():
        raise CelstackError(f"{path}: is missing: this run has no checkpoint yet")
    try:
        with ZipFile(path) as archive:
            # Torch stores without compression; compressed data could expand to any size.
            if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
                raise CelstackError(f"{path}: is damaged: it contains compressed data")
            damaged = archive.testzip()
        if damaged is not None:
            raise CelstackError(f"{path}: is damaged: wrong checksum of {printable(damaged)}")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except CelstackError:
        raise
    except UnpicklingError as error:
        # Without torch's message, which explains how to load the file nevertheless.
        raise CelstackError(f"{path}: contains objects other than tensors") from error
    # Damaged files raise errors of many types.
    except Exception as error:
        raise CelstackError(f"{path}: is damaged: {describe_error(error)[:200]}") from error
    here = version("celstack")
    found = state if isinstance(state, dict) else {}
    missing = _missing_keys(found, MODEL_KEYS)
    weights = found["model"].values() if "model" not in missing else ()
    if not all(isinstance(weight, Tensor) for weight in weights):
        missing.append("model")
    # It becomes part of a command that users may copy.
    if "version" not in missing and not VERSION.fullmatch(found["version"]):
        missing.append("version")
    if missing:
        names = ", ".join(sorted(missing))
        raise CelstackError(
            f"{path}: not a checkpoint of celstack {here}: missing or invalid: {names}"
        )
    made = state["version"]
    if made.split(".")[:2] != here.split(".")[:2]:
        raise CelstackError(
            f"{path}: was written by celstack {made}, but this is {here}; "
            f"'pip install celstack=={made}' installs the version that opens it"
        )
    return dict(state)


def stored_image_shape(state: dict[str, Any]) -> tuple[int, int, int] | None:
    """Return the shape (C, H, W) in a checkpoint; None if it has none, as those of 0.1.0."""
    shape: Any = state.get("image_shape")
    if image_shape_problem(shape) or math.prod(shape) > MAX_IMAGE_VALUES:
        return None
    channels, height, width = shape
    return channels, height, width


def check_resumable(state: dict[str, Any], recipe: str, path: Path) -> None:
    """Raise a CelstackError unless a run of ``recipe`` can resume from a checkpoint."""
    missing = _missing_keys(state, RESUME_KEYS)
    if missing:
        raise CelstackError(
            f"{path}: cannot resume: missing or invalid: {', '.join(sorted(missing))}"
        )
    if state["recipe"] and recipe:
        try:
            odd = [
                *recipe_differences(
                    json.loads(state["recipe"]), json.loads(recipe), MAY_CHANGE_ON_RESUME
                )
            ]
        except (ValueError, RecursionError) as error:
            text = "cannot resume: its recipe cannot be read"
            raise CelstackError(f"{path}: {text}") from error
        if odd:
            before, after = map(_shown_value, odd[0][1:])
            raise CelstackError(
                f"{path}: its recipe differs from the run's: {odd[0].path} was {before} and "
                f"is {after}{_more(odd)}"
            )


def load_weights(decomposer: Decomposer, weights: dict[str, Tensor], folder: Path) -> None:
    """Load weights into the model, after checking that names, shapes and types match."""
    try:
        weights = upgrade_weights(decomposer, weights)
    # Parts of other packages convert data that may be damaged: any error is possible.
    except Exception as error:
        reason = describe_error(error)[:200]
        raise CelstackError(
            f"{folder}: checkpoint.pt does not match the recipe: {reason}"
        ) from error
    odd = state_dict_mismatches(decomposer.state_dict(), weights)
    if odd:
        raise CelstackError(
            f"{folder}: checkpoint.pt does not match the recipe: {odd[0]}{_more(odd)}"
        )
    decomposer.load_state_dict(weights)


def _missing_keys(state: dict[str, Any], types: dict[str, type]) -> list[str]:
    """List the keys that are missing or have the wrong type; numbers must not be negative."""
    odd = [key for key, kind in types.items() if not isinstance(state.get(key), kind)]
    numbers = [key for key, kind in types.items() if kind is int and key not in odd]
    return odd + [key for key in numbers if isinstance(state[key], bool) or state[key] < 0]


def _shown_value(value: Any) -> str:
    return "nothing" if value is None else format_value(value)


def _more(items: Sequence[object]) -> str:
    return f", and {len(items) - 1} more" if len(items) > 1 else ""


def _random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the state of torch's generators, the only ones that parts use."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def _set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    if text := tensor_mismatch(state["cpu"], torch.get_rng_state()):
        raise ValueError(f"the random state is {text}")
    torch.set_rng_state(state["cpu"])
    # A run that is resumed on another device has no generator state for it.
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    elif device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])

"""Checkpoints: all that a run needs to go on bit for bit, and what is refused of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import torch
from torch import Tensor

from celstack.errors import CelstackError
from celstack.keypath import join
from celstack.model.decomposer import Decomposer
from celstack.runs.checkpoint_upgrade import upgrade_moments, upgrade_weights
from celstack.runs.checkpoint_validation import fitted_moments, misfit, odd_weight
from celstack.text import describe_error, format_value, printable

KEYS = {
    "version": str,
    "step": int,
    "stage": int,
    "sprites_frozen": bool,
    "model": dict,
    "optimizer": dict,
}
"""What a checkpoint holds of the model."""
ONWARD = {"recipe": str, "usage": Tensor, "random": dict, "torch": str, "log": int}
"""What it holds besides, so that the run can go on."""
FREE = {
    "description",
    "published",
    "observers",
    "metrics",
    "evaluation",
    "dataset.root",
    "training.workers",
    "training.checkpoint_every",
}
"""What may change while a run is at rest, because nothing that it learns depends on it."""
SPELLING = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")
"""What versions look like."""


def pack(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    usage: Tensor,
    place: tuple[int, int],
    recipe: str,
) -> dict[str, Any]:
    """Gather what a run is at a place, which is its whole steps so far and its stage.

    ``recipe`` is JSON, or empty.
    """
    step, stage = place
    device = next(decomposer.parameters()).device
    return {
        "version": version("celstack"),
        "torch": str(torch.__version__),
        "recipe": recipe,
        "step": step,
        "stage": stage,
        # Of what a stage sets, this is not among the weights.
        "sprites_frozen": decomposer.sprites_frozen,
        "model": decomposer.state_dict(),
        "optimizer": optimizer.state_dict(),
        "usage": usage,
        "random": _random_state(device),
    }


def unpack(
    state: dict[str, Any],
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    usage: Tensor,
    folder: Path,
) -> None:
    """Make model, optimiser, counts and random state what they were."""
    load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    try:
        moments = upgrade_moments(decomposer, optimizer, state["model"], state["optimizer"])
        optimizer.load_state_dict(fitted_moments(optimizer, moments))
        if text := misfit(state["usage"], usage):
            raise ValueError(f"usage is {text}")
        usage.copy_(state["usage"])
        _set_random_state(state["random"], next(decomposer.parameters()).device)
    except (ValueError, RuntimeError, LookupError, TypeError) as error:
        reason = describe_error(error)[:200]
        raise CelstackError(
            f"{folder}: checkpoint.pt does not fit the recipe: {reason}"
        ) from error


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, or say why it cannot be used; nothing in it is ever run."""
    if not path.is_file():
        raise CelstackError(f"{path}: is missing: nothing was learned in this run yet")
    try:
        with ZipFile(path) as archive:
            # Torch packs nothing; what is packed could unpack to any size.
            if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
                raise CelstackError(f"{path}: is damaged: something in it is compressed")
            spoilt = archive.testzip()
        if spoilt is not None:
            raise CelstackError(
                f"{path}: is damaged: {printable(spoilt)} is not what was written"
            )
        state = torch.load(path, map_location="cpu", weights_only=True)
    except CelstackError:
        raise
    except UnpicklingError as error:
        # Not its own words, which tell how to open it all the same.
        raise CelstackError(f"{path}: holds something else than weights") from error
    # Files that are cut off or changed fail in many ways.
    except Exception as error:
        raise CelstackError(f"{path}: is damaged: {describe_error(error)[:200]}") from error
    here = version("celstack")
    held = state if isinstance(state, dict) else {}
    missing = _lacking(held, KEYS)
    weights = held["model"].values() if "model" not in missing else ()
    if not all(isinstance(weight, Tensor) for weight in weights):
        missing.append("model")
    # It becomes part of a command that people may copy.
    if "version" not in missing and not SPELLING.fullmatch(held["version"]):
        missing.append("version")
    if missing:
        lacks = ", ".join(sorted(missing))
        raise CelstackError(f"{path}: was not made by celstack {here}: it lacks {lacks}")
    made = state["version"]
    if made.split(".")[:2] != here.split(".")[:2]:
        raise CelstackError(
            f"{path}: was made by celstack {made}, and this is {here}; "
            f"'pip install celstack=={made}' installs the version that opens it"
        )
    return dict(state)


def check_onward(state: dict[str, Any], recipe: str, path: Path) -> None:
    """Refuse to go on from a checkpoint of another recipe, and say what differs."""
    missing = _lacking(state, ONWARD)
    if missing:
        raise CelstackError(
            f"{path}: a run cannot go on from it: it lacks {', '.join(sorted(missing))}"
        )
    if state["recipe"] and recipe:
        try:
            odd = list(_differences(json.loads(state["recipe"]), json.loads(recipe)))
        except (ValueError, RecursionError) as error:
            text = "a run cannot go on from it: its recipe cannot be read"
            raise CelstackError(f"{path}: {text}") from error
        if odd:
            more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
            raise CelstackError(f"{path}: is of another recipe than the run's: {odd[0]}{more}")


def load_weights(decomposer: Decomposer, weights: dict[str, Tensor], folder: Path) -> None:
    """Give the model its weights, or say which do not fit the recipe."""
    try:
        weights = upgrade_weights(decomposer, weights)
    # Parts of other packages read what may be damaged, and fail in any way.
    except Exception as error:
        reason = describe_error(error)[:200]
        raise CelstackError(
            f"{folder}: checkpoint.pt does not fit the recipe: {reason}"
        ) from error
    odd = odd_weight(decomposer.state_dict(), weights)
    if odd:
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise CelstackError(f"{folder}: checkpoint.pt does not fit the recipe: {odd[0]}{more}")
    decomposer.load_state_dict(weights)


def _lacking(state: dict[str, Any], kinds: dict[str, type]) -> list[str]:
    """List what is not there, or not of its kind; all numbers count something."""
    odd = [key for key, kind in kinds.items() if not isinstance(state.get(key), kind)]
    numbers = [key for key, kind in kinds.items() if kind is int and key not in odd]
    return odd + [key for key in numbers if isinstance(state[key], bool) or state[key] < 0]


def _differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Say where two recipes differ in what matters for learning."""
    if place in FREE or before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            inner = join(place, key)
            yield from _differences(before.get(key), now.get(key), inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(*pair, join(place, index))
    else:
        was, is_now = ("nothing" if x is None else format_value(x) for x in (before, now))
        yield f"{place} was {was} and is {is_now}"


def _random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the state of all generators in use; parts draw on torch's and on no other."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def _set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    if text := misfit(state["cpu"], torch.get_rng_state()):
        raise ValueError(f"the random state is {text}")
    torch.set_rng_state(state["cpu"])
    # A run that goes on elsewhere than it began has no state to restore there.
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    elif device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])

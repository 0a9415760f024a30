"""Open a run: from its folder to the assembly and the model as it was learned."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZipFile

import attrs
import torch
from torch import Tensor

from celstack.assemble import assemble
from celstack.assembly import Assembly, Stage
from celstack.catalog import Catalog
from celstack.errors import CelstackError, one_line
from celstack.finished import check_run
from celstack.model import Decomposer
from celstack.recipe import read_recipe
from celstack.resolve import resolve, signature_of

KEYS = {
    "version": str,
    "step": int,
    "stage": int,
    "sprites_frozen": bool,
    "model": dict,
    "optimizer": dict,
}
"""What a checkpoint holds."""
SAMPLES = 100
"""How many images of noise a model is made from, before it gets its weights."""


@attrs.frozen(eq=False)
class OpenRun:
    """A run that can be used: its parts, and its model after so many steps."""

    folder: Path
    assembly: Assembly
    decomposer: Decomposer
    step: int


def open_run(
    folder: str | Path, overrides: Iterable[str] = (), data: str | Path | None = None
) -> OpenRun:
    """Open a run, on the CPU and for evaluation, with its recipe changed as overrides say.

    ``data`` is another root for the dataset, which is not read here.
    """
    folder = Path(folder)
    check_run(folder)
    state = read_checkpoint(folder / "checkpoint.pt")
    assembly = _assemble(folder, overrides, data)
    decomposer = assembly.decomposer()
    # What learns is made from noise: it gets its weights right after, and need not know data.
    with torch.random.fork_rng(devices=[]):
        decomposer.prepare(torch.rand(SAMPLES, *assembly.dataset.image_shape))
    _load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    decomposer.use(_stage(assembly, state["stage"], folder).selector)
    return OpenRun(folder, assembly, decomposer.eval(), state["step"])


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, or say why it cannot be used; nothing in it is ever run."""
    if not path.is_file():
        raise CelstackError(f"{path}: is missing: nothing was learned in this run yet")
    try:
        with ZipFile(path) as archive:
            spoilt = archive.testzip()
        if spoilt is not None:
            raise CelstackError(f"{path}: is damaged: {spoilt} is not what was written")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except CelstackError:
        raise
    except UnpicklingError as error:
        # Not its own words, which tell how to open it all the same.
        raise CelstackError(f"{path}: holds something else than weights") from error
    # Files that are cut off or changed fail in many ways.
    except Exception as error:
        raise CelstackError(f"{path}: is damaged: {one_line(error)[:200]}") from error
    here = version("celstack")
    held = state if isinstance(state, dict) else {}
    missing = [key for key, kind in KEYS.items() if not isinstance(held.get(key), kind)]
    if not missing and not all(isinstance(one, Tensor) for one in held["model"].values()):
        missing = ["model"]
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


def _assemble(folder: Path, overrides: Iterable[str], data: str | Path | None) -> Assembly:
    recipe = read_recipe(str(folder / "resolved.toml"), overrides)
    # Nobody is told anything, so those who listened to the run need not be here.
    recipe.table.pop("observers", None)
    catalog = Catalog()
    if data is not None:
        resolve(recipe, catalog)  # so that there is a dataset
        use = recipe.table["dataset"]["use"]
        if "root" not in signature_of(catalog, "dataset", use).names():
            raise CelstackError(f"--data {data}: {use} reads no files, for it takes no root")
        recipe.table["dataset"]["root"] = str(data)
    return assemble(resolve(recipe, catalog), catalog)


def _stage(assembly: Assembly, number: int, folder: Path) -> Stage:
    """Return the stage that a run is in, counted from 1, or say that it has none such."""
    stages = assembly.stages
    if not 1 <= number <= len(stages):
        raise CelstackError(
            f"{folder}: checkpoint.pt does not fit the recipe: it is of stage {number}, "
            f"of {len(stages)}"
        )
    return stages[number - 1]


def _load_weights(decomposer: Decomposer, weights: dict[str, Tensor], folder: Path) -> None:
    """Give the model its weights, or say which do not fit the recipe."""
    wanted = decomposer.state_dict()
    odd = [f"{name} is missing" for name in wanted if name not in weights]
    odd += [f"{name} is not in the recipe's model" for name in weights if name not in wanted]
    odd += [
        f"{name} is {list(weights[name].shape)}, not {list(wanted[name].shape)}"
        for name in wanted
        if name in weights and weights[name].shape != wanted[name].shape
    ]
    if odd:
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise CelstackError(f"{folder}: checkpoint.pt does not fit the recipe: {odd[0]}{more}")
    decomposer.load_state_dict(weights)

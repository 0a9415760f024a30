"""Open a run: from its folder to the assembly and the model as it was learned."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs
import torch

from celstack.errors import CelstackError
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve, signature_of
from celstack.registry.catalog import Catalog
from celstack.runs.checkpoint import load_weights, read_checkpoint
from celstack.runs.finished import check_run
from celstack.system import tune_allocator

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
    tune_allocator()
    folder = Path(folder)
    check_run(folder)
    state = read_checkpoint(folder / "checkpoint.pt")
    assembly = _assemble(folder, overrides, data)
    decomposer = assembly.decomposer()
    # What learns is made from noise: it gets its weights right after, and need not know data.
    with torch.random.fork_rng(devices=[]):
        decomposer.prepare(torch.rand(SAMPLES, *assembly.dataset.image_shape))
    load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    stage = _stage(assembly, state["stage"], folder)
    decomposer.use_selector(stage.selector)
    decomposer.activate(stage.transforms)
    return OpenRun(folder, assembly, decomposer.eval(), state["step"])


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

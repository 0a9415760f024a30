"""Open a run: from its folder to its assembly and trained model."""

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


@attrs.frozen(eq=False)
class OpenRun:
    """An opened run: its assembly, and its model after ``step`` steps."""

    folder: Path
    assembly: Assembly
    decomposer: Decomposer
    step: int


def open_run(
    folder: str | Path, overrides: Iterable[str] = (), data: str | Path | None = None
) -> OpenRun:
    """Open a run, on the CPU and in evaluation mode.

    Args:
        folder: The folder of the run.
        overrides: Changes of its recipe, as ``--set`` takes them.
        data: Another root for the dataset; no image is read here.

    Example:
        >>> run = celstack.open_run("runs/tetrominoes/2026-01-31-12.00.00-seed0")
        >>> scene = run.decomposer.explain(images)
    """
    tune_allocator()
    folder = Path(folder)
    check_run(folder)
    state = read_checkpoint(folder / "checkpoint.pt")
    assembly = _assemble(folder, overrides, data)
    decomposer = assembly.decomposer()
    with torch.random.fork_rng(devices=[]):
        decomposer.allocate(assembly.dataset.image_shape)
    load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    stage = _stage(assembly, state["stage"], folder)
    decomposer.use_selector(stage.selector)
    decomposer.activate(stage.transforms)
    return OpenRun(folder, assembly, decomposer.eval(), state["step"])


def _assemble(folder: Path, overrides: Iterable[str], data: str | Path | None) -> Assembly:
    recipe = read_recipe(str(folder / "resolved.toml"), overrides)
    # No event is emitted, so the observers of the run need not be installed.
    recipe.table.pop("observers", None)
    catalog = Catalog()
    if data is not None:
        resolve(recipe, catalog)  # raises if there is no valid dataset
        use = recipe.table["dataset"]["use"]
        if "root" not in signature_of(catalog, "dataset", use).names():
            raise CelstackError(f"--data {data}: {use} reads no files (it has no option root)")
        recipe.table["dataset"]["root"] = str(data)
    return assemble(resolve(recipe, catalog), catalog)


def _stage(assembly: Assembly, number: int, folder: Path) -> Stage:
    """Return the stage with this number, counted from 1."""
    stages = assembly.stages
    if not 1 <= number <= len(stages):
        raise CelstackError(
            f"{folder}: checkpoint.pt does not match the recipe: it is in stage {number} "
            f"of {len(stages)}"
        )
    return stages[number - 1]

"""Open a run: from its folder to its assembly and trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch

from celstack.errors import CelstackError
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.build import assemble, build_part
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve, signature_of
from celstack.registry.catalog import Catalog
from celstack.runs.absent_parts import drop_absent_metrics, find_dataset
from celstack.runs.checkpoint import load_weights, read_checkpoint, stored_image_shape
from celstack.runs.finished import check_run
from celstack.runs.used_packages import read_used_packages
from celstack.system import tune_allocator


@attrs.frozen(eq=False)
class OpenRun:
    """An opened run: its assembly, and its model after ``step`` steps.

    ``left_out`` says, by name, why metrics of the run are not in its assembly, such as one
    whose plugin is not installed. Where the dataset cannot be used, that of the assembly knows
    the shape of its images, and reading them raises a CelstackError that says why.
    """

    folder: Path
    assembly: Assembly
    decomposer: Decomposer
    step: int
    left_out: Mapping[str, str] = attrs.field(factory=dict)


def open_run(
    folder: str | Path,
    overrides: Iterable[str] = (),
    data: str | Path | None = None,
    assembly: Assembly | None = None,
) -> OpenRun:
    """Open a run, on the CPU and in evaluation mode.

    Neither the images of its dataset nor its metrics are needed.

    Args:
        folder: The folder of the run.
        overrides: Changes of its recipe, as ``--set`` takes them.
        data: Another root for the dataset; no image is read here.
        assembly: The assembly of a run that was made in Python, where no recipe can express
            it: with parts that are not installed plugins, say. By default, its recipe's.

    Example:
        >>> run = celstack.open_run("runs/tetrominoes/2026-01-31-12.00.00-seed0")
        >>> scene = run.decomposer.explain(images)
    """
    tune_allocator()
    folder = Path(folder)
    check_run(folder)
    state = read_checkpoint(folder / "checkpoint.pt")
    shape = stored_image_shape(state)
    left_out: dict[str, str] = {}
    if assembly is None:
        assembly, left_out = _assemble(folder, [*overrides], data, shape)
        shape = assembly.dataset.image_shape  # another, if overrides say so
    elif data is not None or tuple(overrides):
        raise CelstackError("open_run: takes an assembly, or overrides and data of a recipe")
    decomposer = assembly.decomposer()
    with torch.random.fork_rng(devices=[]):
        decomposer.allocate(shape or assembly.dataset.image_shape)
    load_weights(decomposer, state["model"], folder)
    decomposer.sprites_frozen = state["sprites_frozen"]
    stage = _stage(assembly, state["stage"], folder)
    decomposer.use_selector(stage.selector)
    decomposer.activate(stage.transforms)
    return OpenRun(folder, assembly, decomposer.eval(), state["step"], left_out)


def _assemble(
    folder: Path,
    overrides: Sequence[str],
    data: str | Path | None,
    image_shape: tuple[int, int, int] | None,
) -> tuple[Assembly, dict[str, str]]:
    """Assemble the recipe of a run, without what is not needed; return why, by metric."""
    path = str(folder / "resolved.toml")
    stored, recipe = read_recipe(path).table, read_recipe(path, overrides)
    # No event is emitted, so the observers of the run need not be installed.
    recipe.table.pop("observers", None)
    catalog = Catalog(used=read_used_packages(folder))
    left_out = drop_absent_metrics(recipe, stored.get("metrics", []), catalog)
    given = {}
    if data is not None:
        resolve(recipe, catalog)  # raises if there is no valid dataset
        use = recipe.table["dataset"]["use"]
        if "root" not in signature_of(catalog, "dataset", use).names():
            raise CelstackError(f"--data {data}: {use} reads no files (it has no option root)")
        recipe.table["dataset"]["root"] = str(data)
    # A dataset that the user changed has to work.
    elif image_shape is not None and recipe.table.get("dataset") == stored.get("dataset"):
        given["dataset"] = find_dataset(recipe, catalog, image_shape)
    resolved = resolve(recipe, catalog, given)
    # Nothing is trained, so validation need not fit the metrics and the dataset that are here.
    validation = build_part(path, resolved.root.options.pop("validation"), catalog)
    assembly: Any = assemble(resolved, catalog)  # mypy does not know that it is an attrs class
    return attrs.evolve(assembly, validation=validation), left_out


def _stage(assembly: Assembly, number: int, folder: Path) -> Stage:
    """Return the stage with this number, counted from 1."""
    stages = assembly.stages
    if not 1 <= number <= len(stages):
        raise CelstackError(
            f"{folder}: checkpoint.pt does not match the recipe: it is in stage {number} "
            f"of {len(stages)}"
        )
    return stages[number - 1]

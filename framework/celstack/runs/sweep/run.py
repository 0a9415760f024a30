"""Run a sweep: check what it needs, and run what is not finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from celstack.data.availability import require_images
from celstack.recipe.assembly import Assembly
from celstack.recipe.build import assemble
from celstack.recipe.schedule import schedule
from celstack.registry.catalog import Catalog
from celstack.runs.finished import is_finished
from celstack.runs.sweep.folders import find_runs, new_run, recipe_key
from celstack.runs.sweep.grid import format_cell
from celstack.runs.sweep.plan import Plan, map_cells
from celstack.runs.sweep.progress import SweepProgress
from celstack.runs.sweep.results import SweepResults, read_results
from celstack.system import find_device

Runner = Callable[[Sequence[Callable[[], Path]], SweepProgress], dict[int, str]]
"""Executes runs, given the functions that make their folders; returns the reasons of failed
runs, by their index."""


def check_parts(plan: Plan, catalog: Catalog) -> list[Assembly]:
    """Assemble every run, and raise all mistakes that only this reveals together."""
    recipes = {id(run.cell): run.resolved for run in plan.runs}
    cells = [run.cell for run in plan.runs]
    return map_cells(plan.recipe, cells, lambda cell: assemble(recipes[id(cell)], catalog))


def check_machine(plan: Plan, assemblies: Sequence[Assembly], device: str) -> list[int | None]:
    """Check that device and images are available; return how many steps each run takes."""
    find_device(device)
    steps: list[int | None] = []
    images: dict[str, int] = {}
    for run, assembly in zip(plan.runs, assemblies, strict=True):
        # Once per dataset: runs started together would all generate it at the same time.
        data = repr((run.resolved.as_table()["dataset"], assembly.evaluation.split))
        if data not in images:
            require_images(assembly.dataset, assembly.batch_sizes())
            images[data] = assembly.dataset.count("train")
        phases = schedule(assembly.stages, images[data], assembly.training.batch_size)
        steps.append(phases[-1].end)
    return steps


def run_sweep(
    plan: Plan,
    folder: Path,
    runner: Runner,
    steps: Sequence[int | None],
    quiet: bool,
    announce: Callable[[str], None],
) -> SweepResults:
    """Run what is not finished yet, and read the results of all runs.

    Args:
        plan: The runs of the sweep.
        folder: The folder of the sweep.
        runner: What executes runs.
        steps: How many steps each run takes; None if unknown.
        quiet: Whether to show no progress.
        announce: Called once, before the first run starts, with how many there are.
    """
    known = find_runs(folder / plan.runs[0].resolved.name)
    folders = [known.get(recipe_key(run.resolved)) for run in plan.runs]
    left = [n for n, path in enumerate(folders) if path is None or not is_finished(path)]
    done = len(plan.runs) - len(left)
    before = f", {done} of them already finished" if done else ""
    plural = "" if len(plan.runs) == 1 else "s"
    announce(f"{len(plan.runs)} run{plural} in {folder}{before}")

    def maker(number: int) -> Callable[[], Path]:
        def make() -> Path:
            path = folders[number] or new_run(folder, plan.runs[number].resolved)
            folders[number] = path
            return path

        return make

    titles = [format_cell(plan.runs[number].cell) for number in left]
    failures: dict[int, str] = {}
    if left:
        try:
            with SweepProgress(titles, [steps[number] for number in left], quiet) as progress:
                failures = runner([maker(number) for number in left], progress)
        except KeyboardInterrupt:
            done = sum(1 for path in folders if path and is_finished(path))
            raise KeyboardInterrupt(
                f"Interrupted; progress saved, {done} of {len(plan.runs)} runs finished. "
                "Resume with the same command"
            ) from None
    reasons = {left[number]: reason for number, reason in failures.items()}
    return read_results(plan, folders, reasons)

"""Conduct a sweep: check what it needs, and run what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from celstack.data.availability import require_images
from celstack.recipe.assembly import Assembly
from celstack.recipe.build import assemble
from celstack.recipe.schedule import schedule
from celstack.registry.catalog import Catalog
from celstack.runs.sweep.folders import find_runs, identity, is_finished, new_run
from celstack.runs.sweep.grid import spell
from celstack.runs.sweep.plan import Plan, for_each
from celstack.runs.sweep.progress import Listener
from celstack.runs.sweep.results import Results, gather
from celstack.system import find_device

Runner = Callable[[Sequence[Callable[[], Path]], Listener], dict[int, str]]
"""Runs in the folders that it is given the makers of; returns why some failed, by number."""


def check_parts(plan: Plan, catalog: Catalog) -> list[Assembly]:
    """Put the parts of every run together, or tell all mistakes that only show then."""
    recipes = {id(run.cell): run.resolved for run in plan.runs}
    cells = [run.cell for run in plan.runs]
    return for_each(plan.recipe, cells, lambda cell: assemble(recipes[id(cell)], catalog))


def check_here(plan: Plan, assemblies: Sequence[Assembly], device: str) -> list[int | None]:
    """Look for device and images on this machine; return how many steps each run takes."""
    find_device(device)
    steps: list[int | None] = []
    images: dict[str, int] = {}
    for run, assembly in zip(plan.runs, assemblies, strict=True):
        # Once for all that share them: runs that begin together would make them together.
        data = repr((run.resolved.as_table()["dataset"], assembly.evaluation.split))
        if data not in images:
            require_images(assembly.dataset, ("train", assembly.evaluation.split))
            images[data] = assembly.dataset.count("train")
        phases = schedule(assembly.stages, images[data], assembly.training.batch_size)
        steps.append(phases[-1].end)
    return steps


def conduct(
    plan: Plan,
    folder: Path,
    runner: Runner,
    steps: Sequence[int | None],
    quiet: bool,
    announce: Callable[[str], None],
) -> Results:
    """Run what is not finished yet, and gather all that is.

    ``announce`` is called once, before the first run starts, with how many there are.
    """
    known = find_runs(folder / plan.runs[0].resolved.name)
    folders = [known.get(identity(run.resolved)) for run in plan.runs]
    left = [n for n, path in enumerate(folders) if path is None or not is_finished(path)]
    done = len(plan.runs) - len(left)
    before = f", {done} of them finished before" if done else ""
    announce(f"{len(plan.runs)} runs in {folder}{before}")

    def maker(number: int) -> Callable[[], Path]:
        def make() -> Path:
            path = folders[number] or new_run(folder, plan.runs[number].resolved)
            folders[number] = path
            return path

        return make

    titles = [spell(plan.runs[number].cell) for number in left]
    failures: dict[int, str] = {}
    if left:
        try:
            with Listener(titles, [steps[number] for number in left], quiet) as listener:
                failures = runner([maker(number) for number in left], listener)
        except KeyboardInterrupt:
            done = sum(1 for path in folders if path and is_finished(path))
            raise KeyboardInterrupt(
                f"interrupted; {done} of {len(plan.runs)} runs are finished, what others "
                "learned is kept, and the same command goes on"
            ) from None
    reasons = {left[number]: reason for number, reason in failures.items()}
    return gather(plan, folders, reasons)

"""The plan of a sweep: a checked recipe for every combination of its grid."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from celstack.errors import CelstackError, Problem, RecipeError
from celstack.recipe.load import read_recipe
from celstack.recipe.overrides import Override, parse
from celstack.recipe.resolve import resolve
from celstack.recipe.resolved import ResolvedRecipe
from celstack.registry.catalog import Catalog
from celstack.runs.sweep.grid import OPTION, Axis, Cell, combine, format_cell, read_grid

Result = TypeVar("Result")


class PlannedRun(NamedTuple):
    """A run of the sweep: its combination in the grid, and its recipe."""

    cell: Cell
    resolved: ResolvedRecipe

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.resolved.root.options["seed"])


class Plan(NamedTuple):
    """The recipe, axes and runs of a sweep."""

    recipe: str
    axes: list[Axis]
    runs: list[PlannedRun]


def make_plan(recipe: str, fixed: Sequence[str], grid: Sequence[str], catalog: Catalog) -> Plan:
    """Check recipe, grid and values, without importing torch.

    Raises:
        RecipeError: With the mistakes of all combinations, each once.
    """
    if not grid:
        raise CelstackError(f"{OPTION}: required, such as {OPTION} selector.sweeps=1,3")
    read_recipe(recipe)  # if the file cannot be read, report nothing else
    problems, overrides = [], []
    for text in fixed:
        try:
            overrides.append(parse(text))
        except CelstackError as error:
            problems.append(Problem("", str(error)))
    found = read_grid(grid, overrides)
    problems += [one for one in found if isinstance(one, Problem)]
    axes = [one for one in found if isinstance(one, Axis)]

    def check(cell: Cell) -> ResolvedRecipe:
        return resolve(read_recipe(recipe, [*overrides, *cell]), catalog)

    cells = combine(axes)
    resolved = map_cells(recipe, cells, check, problems)
    runs = [PlannedRun(*pair) for pair in zip(cells, resolved, strict=True)]
    known: dict[str, Cell] = {}
    for run in runs:
        same = known.setdefault(json.dumps(run.resolved.as_table(), default=str), run.cell)
        if same is not run.cell:
            raise CelstackError(
                f"{OPTION}: two runs are the same: {format_cell(same)}, and "
                f"{format_cell(run.cell)}"
            )
    return Plan(recipe, axes, runs)


def map_cells(
    recipe: str,
    cells: Sequence[Cell],
    function: Callable[[Cell], Result],
    problems: Sequence[Problem] = (),
) -> list[Result]:
    """Call a function for every combination; raise all problems together, each once.

    Args:
        recipe: The name of the recipe, for the error.
        cells: All combinations.
        function: What to call; it may raise CelstackError.
        problems: Problems that are known already.
    """
    results: list[Result] = []
    wrong: dict[Problem, list[Cell]] = {}
    for cell in cells:
        try:
            results.append(function(cell))
        except RecipeError as error:
            for problem in error.problems:
                wrong.setdefault(problem, []).append(cell)
        except CelstackError as error:
            wrong.setdefault(Problem("", str(error)), []).append(cell)
    found = [
        problem._replace(text=problem.text + _where(problem, at, cells))
        for problem, at in wrong.items()
    ]
    if found or problems:
        raise RecipeError(recipe, [*problems, *found])
    return results


def _where(problem: Problem, at: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """Name the values that all combinations with a problem share, and others do not."""
    shared: list[Override] = []
    for values in zip(*at, strict=True):
        everywhere = all(values[0] in cell for cell in cells)
        same = all(value == values[0] for value in values)
        # The value at the problem's own place is already part of its text.
        if same and not everywhere and values[0].path != problem.place:
            shared.append(values[0])
    return f" (with {format_cell(shared)})" if shared else ""

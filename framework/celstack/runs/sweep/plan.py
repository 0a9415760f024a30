"""The plan of a sweep: a checked recipe for every combination, or all mistakes at once."""

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
from celstack.runs.sweep.grid import OPTION, Axis, Cell, combine, read_grid, spell

Made = TypeVar("Made")


class Planned(NamedTuple):
    """A run that is to be made: its place in the grid, and its recipe."""

    cell: Cell
    resolved: ResolvedRecipe

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.resolved.root.options["seed"])


class Plan(NamedTuple):
    """What is swept, and the runs of it."""

    recipe: str
    axes: list[Axis]
    runs: list[Planned]


def make_plan(recipe: str, fixed: Sequence[str], grid: Sequence[str], catalog: Catalog) -> Plan:
    """Check recipe, grid and values; nothing of torch is imported."""
    if not grid:
        raise CelstackError(f"{OPTION}: say what varies, as in {OPTION} selector.sweeps=1,3")
    read_recipe(recipe)  # a file that cannot be read has no other mistakes
    problems, said = [], []
    for text in fixed:
        try:
            said.append(parse(text))
        except CelstackError as error:
            problems.append(Problem("", str(error)))
    found = read_grid(grid, said)
    problems += [one for one in found if isinstance(one, Problem)]
    axes = [one for one in found if isinstance(one, Axis)]

    def check(cell: Cell) -> ResolvedRecipe:
        return resolve(read_recipe(recipe, [*said, *cell]), catalog)

    cells = combine(axes)
    resolved = for_each(recipe, cells, check, problems)
    runs = [Planned(*pair) for pair in zip(cells, resolved, strict=True)]
    known: dict[str, Cell] = {}
    for run in runs:
        twin = known.setdefault(json.dumps(run.resolved.as_table(), default=str), run.cell)
        if twin is not run.cell:
            raise CelstackError(
                f"{OPTION}: two runs are the same: {spell(twin)}, and {spell(run.cell)}"
            )
    return Plan(recipe, axes, runs)


def for_each(
    recipe: str,
    cells: Sequence[Cell],
    act: Callable[[Cell], Made],
    problems: Sequence[Problem] = (),
) -> list[Made]:
    """Do something with every combination; raise all that is wrong with any, each once."""
    made: list[Made] = []
    wrong: dict[Problem, list[Cell]] = {}
    for cell in cells:
        try:
            made.append(act(cell))
        except RecipeError as error:
            for problem in error.problems:
                wrong.setdefault(problem, []).append(cell)
        except CelstackError as error:
            wrong.setdefault(Problem("", str(error)), []).append(cell)
    told = [
        problem._replace(text=problem.text + _where(problem, at, cells))
        for problem, at in wrong.items()
    ]
    if told or problems:
        raise RecipeError(recipe, [*problems, *told])
    return made


def _where(problem: Problem, at: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """Say what combinations with a problem have in common, if others have it not."""
    shared: list[Override] = []
    for values in zip(*at, strict=True):
        everywhere = all(values[0] in cell for cell in cells)
        same = all(value == values[0] for value in values)
        # Whoever reads the place and the value there need not be told both again.
        if same and not everywhere and values[0].path != problem.place:
            shared.append(values[0])
    return f" (with {spell(shared)})" if shared else ""

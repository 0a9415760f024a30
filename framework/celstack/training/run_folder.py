"""The folder of a run that starts or resumes in Python, with the recipe of its assembly."""

from __future__ import annotations

import logging
from pathlib import Path

from celstack.errors import CelstackError, Problem
from celstack.recipe.assembly import Assembly
from celstack.recipe.build import assemble
from celstack.recipe.load_assembly import resolve_recipe
from celstack.recipe.resolved import ResolvedRecipe
from celstack.recipe.write_assembly import recipe_of
from celstack.registry.catalog import Catalog
from celstack.runs.directory import RunDirectory
from celstack.runs.finished import read_resolved
from celstack.runs.recipe_diff import MAY_CHANGE_ON_RESUME, recipe_differences
from celstack.text import format_value

LOG = logging.getLogger("celstack")
MAX_SHOWN_PROBLEMS = 3


def load_planned(planned: object) -> tuple[Assembly, ResolvedRecipe | None]:
    """Return an assembly, and its recipe if it is given by the name of one."""
    if isinstance(planned, Assembly):
        return planned, None
    if not isinstance(planned, str | Path):
        raise CelstackError(
            f"run({format_value(planned)}): give an Assembly, or the path or name of a recipe"
        )
    catalog = Catalog()
    resolved = resolve_recipe(planned, catalog)
    return assemble(resolved, catalog), resolved


def open_directory(
    assembly: Assembly,
    resolved: ResolvedRecipe | None,
    directory: RunDirectory | str | Path | None,
    resume: bool,
) -> RunDirectory | None:
    """Return the directory of a run; a new one gets the recipe of its assembly.

    Args:
        assembly: The parts and settings of the run.
        resolved: Its recipe, if it comes from one.
        directory: A run directory; or the folder for new run folders; or None. To resume,
            the folder of the run.
        resume: Whether the run has started before.
    """
    if directory is None:
        return None
    if isinstance(directory, RunDirectory):
        if not resume and not (directory.folder / "resolved.toml").is_file():
            _save_recipe(assembly, resolved, directory)
        return directory
    folder = Path(directory)
    if resume:
        _check_same(assembly, folder)
        return RunDirectory(folder)
    name = resolved.name if resolved else assembly.dataset.name
    made = RunDirectory.create(folder, name, assembly.seed)
    _save_recipe(assembly, resolved, made)
    return made


def _save_recipe(
    assembly: Assembly, resolved: ResolvedRecipe | None, directory: RunDirectory
) -> None:
    if resolved is None:
        resolved, problems, left_out = recipe_of(assembly, Catalog())
        if problems:
            LOG.warning(
                "%s: no recipe can express this assembly (%s), so commands that need these "
                "parts refuse the run; in Python, celstack.open_run(folder, assembly=assembly) "
                "opens it",
                directory.folder,
                _list_first(problems),
            )
        if left_out:
            LOG.warning(
                "%s: 'run-recipe --resume' would go on without some observers (%s)",
                directory.folder,
                _list_first(left_out),
            )
    directory.save_recipe(resolved)


def _list_first(problems: list[Problem]) -> str:
    shown = [str(problem) for problem in problems[:MAX_SHOWN_PROBLEMS]]
    left = len(problems) - len(shown)
    return "; ".join([*shown, f"and {left} more"] if left else shown)


def _check_same(assembly: Assembly, folder: Path) -> None:
    """Raise unless the folder is that of a run of this assembly."""
    if not folder.is_dir():
        raise CelstackError(f"{folder}: there is no such folder")
    if not (folder / "resolved.toml").is_file():
        return  # started in Python by an earlier version
    before = read_resolved(folder)
    after = recipe_of(assembly, Catalog()).resolved.as_table()
    odd = [
        one
        for one in recipe_differences(before, after, MAY_CHANGE_ON_RESUME)
        # Options that the recipe does not have are those of later versions. A class that is
        # not a plugin may have another name by now.
        if one.before is not None and not (one.path.endswith(".use") and ":" in one.before)
    ]
    if odd:
        was, now = format_value(odd[0].before), format_value(odd[0].after)
        raise CelstackError(
            f"{folder}: cannot resume: its run had another assembly: {odd[0].path} was {was} "
            f"and is {now}; without resume, this starts a new run"
        )

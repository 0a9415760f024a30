"""Resolved recipe to assembly: the only place that builds parts."""

from __future__ import annotations

from typing import Any

from celstack.errors import CelstackError, Problem, RecipeError
from celstack.recipe import assembly
from celstack.recipe.assembly import Assembly
from celstack.recipe.consistency import check_sense
from celstack.recipe.resolved import Node, ResolvedRecipe
from celstack.registry.catalog import BrokenPluginError, Catalog
from celstack.text import describe_error


def assemble(resolved: ResolvedRecipe, catalog: Catalog) -> Assembly:
    """Load the plugins a recipe names, build its parts, check that they make sense together."""
    problems: list[Problem] = []
    built = _build(resolved.root, catalog, problems)
    if not problems:
        problems += check_sense(built)
    if problems:
        raise RecipeError(resolved.source, problems)
    made: Assembly = built
    return made


def build_part(source: str, node: Node, catalog: Catalog) -> Any:
    """Build one part of a recipe by itself."""
    problems: list[Problem] = []
    part = _build(node, catalog, problems)
    if problems:
        raise RecipeError(source, problems)
    return part


def _build(value: Any, catalog: Catalog, problems: list[Problem]) -> Any:
    if isinstance(value, list):
        return [_build(item, catalog, problems) for item in value]
    if not isinstance(value, Node):
        return value
    before = len(problems)
    options = {
        name: _build(option, catalog, problems) for name, option in value.options.items()
    }
    if len(problems) > before:
        return None
    try:
        if not value.use:
            return getattr(assembly, value.kind)(**options)
        part = catalog.load(value.kind, value.use)(**options)
        part.name = value.use
        return part
    except BrokenPluginError as error:
        problems.append(Problem(f"{value.place}.use", str(error)))
    except CelstackError as error:
        problems.append(Problem(value.place, str(error)))
    # A constructor that objects in another way objects to what the recipe says, too.
    except Exception as error:
        problems.append(Problem(value.place, describe_error(error)))
    return None

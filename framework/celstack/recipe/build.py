"""Build the parts of a resolved recipe. The only module that does."""

from __future__ import annotations

from typing import Any

from celstack.errors import CelstackError, Problem, RecipeError
from celstack.recipe import assembly
from celstack.recipe.assembly import Assembly
from celstack.recipe.consistency import check_consistency
from celstack.recipe.resolved import Node, ResolvedRecipe
from celstack.registry.catalog import BrokenPluginError, Catalog
from celstack.text import describe_error


def assemble(resolved: ResolvedRecipe, catalog: Catalog) -> Assembly:
    """Import the plugins of a recipe, build its parts, and check that they work together."""
    problems: list[Problem] = []
    built = _build(resolved.root, catalog, problems)
    if not problems:
        problems += check_consistency(built)
    if problems:
        raise RecipeError(resolved.source, problems)
    made: Assembly = built
    return made


def build_part(source: str, node: Node, catalog: Catalog) -> Any:
    """Build a single part of a recipe."""
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
    # Any other exception of a constructor is reported as a mistake in the recipe, too.
    except Exception as error:
        problems.append(Problem(value.place, describe_error(error)))
    return None

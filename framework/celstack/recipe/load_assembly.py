"""From the name of a recipe to its assembly, with options changed in Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from celstack.recipe.assembly import Assembly
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.overrides import Override, parse_path
from celstack.recipe.resolve import resolve
from celstack.recipe.resolved import ResolvedRecipe
from celstack.registry.catalog import Catalog


def assembly(recipe: str | Path, **overrides: Any) -> Assembly:
    """Build the parts and settings of a recipe.

    Args:
        recipe: The path of a recipe, or the name of a bundled one.
        overrides: Sections and options, as tables that are merged into those of the recipe,
            or by their path. None removes what the recipe says. To use a part that exists,
            ``attrs.evolve(assembly, selector=part)``.

    Raises:
        CelstackError: Everything that is wrong with the recipe, each with its path.

    Example:
        >>> celstack.assembly("smoke.toml", seed=1, training={"batch_size": 64})
        >>> celstack.assembly("smoke.toml", **{"stages[1].steps": 50, "selector": "exhaustive"})
    """
    catalog = Catalog()
    return assemble(resolve_recipe(recipe, catalog, overrides), catalog)


def resolve_recipe(
    recipe: str | Path, catalog: Catalog, overrides: Mapping[str, Any] | None = None
) -> ResolvedRecipe:
    """Load and validate a recipe, with options changed by their paths."""
    changes = [
        Override(parse_path(path, f"override {path}"), _as_toml(value), "override")
        for path, value in (overrides or {}).items()
    ]
    loaded = read_recipe(str(recipe), changes)
    return resolve(loaded._replace(table=_without_none(loaded.table)), catalog)


def _as_toml(value: Any) -> Any:
    """Write tuples as lists, as TOML does."""
    if isinstance(value, Mapping):
        return {key: _as_toml(inner) for key, inner in value.items()}
    return [_as_toml(inner) for inner in value] if isinstance(value, list | tuple) else value


def _without_none(value: Any) -> Any:
    """Remove keys whose value is None: in a recipe, None is a missing key."""
    if isinstance(value, list):
        return [_without_none(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_none(inner) for key, inner in value.items() if inner is not None}

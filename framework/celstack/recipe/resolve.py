"""Validate a recipe against the installed plugins: all mistakes at once, each with its path.

Constructors are the schema: that of ``Assembly`` for the recipe itself, that of its class for
the table of a part. Torch is not imported, unless the signature of a plugin cannot be read
from its source, or a value is "auto" and the dataset has to be built to choose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from importlib import import_module
from typing import Any, get_args, get_origin

from celstack.errors import CelstackError, Problem, RecipeError
from celstack.keypath import format_path, join
from celstack.recipe.auto import AUTO, fill_auto, find_auto
from celstack.recipe.load import Recipe
from celstack.recipe.merge import Table
from celstack.recipe.resolved import Node, ResolvedRecipe
from celstack.recipe.stage_transforms import check_stage_transforms
from celstack.registry.catalog import Catalog
from celstack.registry.coerce import CoercionError, coerce, describe
from celstack.registry.kinds import KINDS
from celstack.registry.signature import (
    REQUIRED,
    Option,
    Signature,
    inspect_class,
    kind_name,
    settings_name,
    without_none,
)
from celstack.registry.static_signature import (
    NotStaticallyReadable,
    read_class,
    read_plugin,
)
from celstack.text import describe_error, did_you_mean, format_value

ROOT = "Assembly"
ASSEMBLY_MODULE = "celstack.recipe.assembly"


def resolve(
    recipe: Recipe, catalog: Catalog, given: Mapping[str, Any] | None = None
) -> ResolvedRecipe:
    """Validate a recipe and fill in defaults, or raise RecipeError with all mistakes.

    Args:
        recipe: The recipe.
        catalog: The installed plugins.
        given: Parts that are built already, by path; their tables are not validated.
    """
    table = deepcopy(recipe.table)
    paths = find_auto(table)
    resolver = _Resolver(catalog)
    resolver.given = given or {}
    chosen: dict[str, Any] = {}
    if paths:
        try:
            chosen = fill_auto(table, paths, _suggested(recipe.source, table, catalog))
        except RecipeError as error:
            resolver.excused = set(map(format_path, paths))
            resolver.problems += error.problems
    root = resolver.settings(ROOT, table, "")
    # Transforms are only known when their own tables are valid.
    if not any(p.place.startswith(("transforms", "stages")) for p in resolver.problems):
        resolver.check_stages(root)
    if resolver.problems:
        raise RecipeError(recipe.source, resolver.problems)
    plugins = [catalog.find(node.kind, node.use) for node in root.parts()]
    packages = {plugin.entry.name: (plugin.package, plugin.version) for plugin in plugins}
    return ResolvedRecipe(
        recipe.name, recipe.source, root, recipe.text, chosen, packages=packages
    )


def resolve_part(source: str, kind: str, table: Any, place: str, catalog: Catalog) -> Node:
    """Validate the table of a single part, or raise RecipeError with all its mistakes."""
    resolver = _Resolver(catalog)
    node = resolver.part(kind, table, place)
    if node is None or resolver.problems:
        raise RecipeError(source, resolver.problems)
    return node


def _suggested(source: str, table: Table, catalog: Catalog) -> dict[str, Any]:
    """Build the dataset and return the values that it suggests, by path."""
    dataset = table.get("dataset")
    own = {"use": dataset} if isinstance(dataset, str) else dataset
    if not isinstance(own, dict):
        return {}
    tried = _Resolver(catalog)
    tried.part("dataset", own, "dataset")
    # Where "auto" is a valid value, such as the name of a folder, nothing is asked.
    wrong = {problem.place for problem in tried.problems}
    asked = {n for n, v in own.items() if v == AUTO and join("dataset", n) in wrong}
    own = {name: value for name, value in own.items() if name not in asked}
    try:
        node = resolve_part(source, "dataset", own, "dataset", catalog)
    except RecipeError:
        return {}  # reported when the whole recipe is checked

    from celstack.recipe.build import build_part

    part = build_part(source, node, catalog)
    try:
        suggested: dict[str, Any] = part.suggest()
        bare = [name for name in suggested if "." not in name]
    # Any other exception of a plugin is reported as a mistake in the recipe, too.
    except Exception as error:
        told = str(error) if isinstance(error, CelstackError) else describe_error(error)
        raise RecipeError(source, [Problem("dataset", told)]) from error
    if bare:
        text = f"suggests {format_value(bare[0])}"
        text += "; a suggestion is named by its path, as sprites.count"
        raise RecipeError(source, [Problem("dataset", text)])
    return suggested


def signature_of(catalog: Catalog, kind: str, name: str) -> Signature:
    """Return the signature of a plugin's constructor; import the plugin only if necessary."""
    entry = catalog.find(kind, name).entry
    try:
        if entry.attr:
            raise NotStaticallyReadable("the entry point names an attribute, not a module")
        return read_plugin(entry.module, KINDS[kind].hook, name)
    except NotStaticallyReadable:
        return inspect_class(catalog.load(kind, name))


def settings_signature(name: str) -> Signature:
    """Return the signature of a settings class of ``celstack.recipe.assembly``."""
    try:
        return read_class(ASSEMBLY_MODULE, name)
    except NotStaticallyReadable:  # installed without its source
        return inspect_class(getattr(import_module(ASSEMBLY_MODULE), name))


class _Resolver:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.problems: list[Problem] = []
        self.excused: set[str] = set()
        """Paths that are not checked, because of a problem that was reported before."""
        self.given: Mapping[str, Any] = {}
        """Values that need no validation, by path."""

    def settings(self, name: str, table: Any, place: str) -> Node:
        if not isinstance(table, Mapping):
            self._report(place, f"must be a table, not {format_value(table)}")
            return Node(place, name, "", {})
        return Node(place, name, "", self._options(settings_signature(name), table, place, ""))

    def part(self, kind: str, table: Any, place: str) -> Node | None:
        if isinstance(table, str):
            table = {"use": table}
        if not isinstance(table, Mapping):
            text = f"must be a table that says which {kind} to use, not {format_value(table)}"
            self._report(place, text)
            return None
        use = table.get("use")
        if not isinstance(use, str):
            missing = (
                "is missing" if use is None else f"must be a string, not {format_value(use)}"
            )
            self._report(join(place, "use"), f"{missing} ({self._known(kind)})")
            return None
        try:
            signature = signature_of(self.catalog, kind, use)
        except CelstackError as error:
            self._report(join(place, "use"), str(error))
            return None
        options = {key: value for key, value in table.items() if key != "use"}
        return Node(place, kind, use, self._options(signature, options, place, use))

    def check_stages(self, root: Node) -> None:
        """Check the transforms that stages name."""
        chains = root.options["transforms"].options.values()
        known = {node.use for chain in chains for node in chain}
        stages = [
            (stage.place, stage.options["transforms"]) for stage in root.options["stages"]
        ]
        for problem in check_stage_transforms(stages, known):
            self._report(problem.place, problem.text)

    def _options(
        self, signature: Signature, table: Mapping[str, Any], place: str, use: str
    ) -> dict[str, Any]:
        for key in table:
            if key not in signature.names():
                self._report(join(place, key), _unknown(key, place, use, signature.names()))
        return {option.name: self._option(option, table, place) for option in signature.options}

    def _option(self, option: Option, table: Mapping[str, Any], place: str) -> Any:
        where = join(place, option.name)
        if where in self.given:
            return self.given[where]
        if option.name in table:
            return self._value(option.annotation, table[option.name], where)
        if option.default is REQUIRED:
            kind = kind_name(option.annotation)
            wanted = self._known(kind) if kind else f"it must be {describe(option.annotation)}"
            self._report(where, f"is missing; {wanted}")
            return None
        if settings_name(option.annotation):
            return self._value(option.annotation, {}, where)
        try:
            return coerce(option.default, option.annotation)
        except CoercionError:  # a default need not be expressible in TOML
            return option.default

    def _value(self, annotation: Any, value: Any, place: str) -> Any:
        annotation = without_none(annotation)
        inner = get_args(annotation)[0] if get_origin(annotation) is list else None
        if kind := kind_name(annotation):
            return self.part(kind, value, place)
        if name := settings_name(annotation):
            return self.settings(name, value, place)
        if kind_name(inner) or settings_name(inner):
            return self._list(inner, value, place)
        try:
            return coerce(value, annotation)
        except CoercionError as error:
            self._report(place + error.place, error.text)
            return None

    def _list(self, inner: Any, value: Any, place: str) -> list[Node]:
        if not isinstance(value, list):
            hint = f"; write [[{place}]], with two brackets" if isinstance(value, dict) else ""
            self._report(place, f"must be a list, not {format_value(value)}{hint}")
            return []
        items = [self._value(inner, item, join(place, n)) for n, item in enumerate(value)]
        return [item for item in items if item is not None]

    def _known(self, kind: str) -> str:
        return f"known {kind}s: {', '.join(self.catalog.names(kind)) or 'none'}"

    def _report(self, place: str, text: str) -> None:
        if place not in self.excused:
            self.problems.append(Problem(place, text))


def _unknown(key: str, place: str, use: str, known: list[str]) -> str:
    if not place:
        return f"there is no such section{did_you_mean(key, known)} (known: {', '.join(known)})"
    return f"{use or place} takes {', '.join(known) or 'no options'}{did_you_mean(key, known)}"

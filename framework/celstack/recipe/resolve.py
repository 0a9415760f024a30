"""Recipe and catalog to a resolved recipe: all mistakes at once, each with its place.

The schema is that of constructors all the way down: the recipe's own is ``Assembly``'s,
a part's table is its class's. Nothing is built here, and torch is not imported unless a
plugin's source does not say plainly what its constructor takes, or something is "auto".
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from celstack.errors import CelstackError, Problem, RecipeError
from celstack.recipe.auto import AUTO, settle, spell, unsettled
from celstack.recipe.load import Recipe
from celstack.recipe.merge import Table
from celstack.recipe.resolved import Node, ResolvedRecipe
from celstack.registry.catalog import Catalog
from celstack.registry.coerce import Misfit, describe, fit
from celstack.registry.kinds import KIND_OF_INTERFACE, KINDS
from celstack.registry.signature import REQUIRED, SETTINGS, Option, Signature, inspect_class
from celstack.registry.static_signature import TooClever, read_class, read_plugin
from celstack.text import describe_error, did_you_mean, format_value, quote_key

ROOT = "Assembly"
ASSEMBLY_MODULE = "celstack.recipe.assembly"


def resolve(recipe: Recipe, catalog: Catalog) -> ResolvedRecipe:
    """Check every word of a recipe, or raise RecipeError with all that is wrong."""
    table = deepcopy(recipe.table)
    places = unsettled(table)
    resolver = _Resolver(catalog)
    chosen: dict[str, Any] = {}
    if places:
        try:
            chosen = settle(table, places, _suggested(recipe.source, table, catalog))
        except RecipeError as error:
            resolver.excused = {spell(path) for paths in places.values() for path in paths}
            resolver.problems += error.problems
    root = resolver.settings(ROOT, table, "")
    # Which transforms there are is only known when nothing is wrong with them.
    if not any(p.place.startswith(("transforms", "stages")) for p in resolver.problems):
        resolver.check_stages(root)
    if resolver.problems:
        raise RecipeError(recipe.source, resolver.problems)
    return ResolvedRecipe(recipe.name, recipe.source, root, recipe.text, chosen)


def _suggested(source: str, table: Table, catalog: Catalog) -> dict[str, Any]:
    """Ask the dataset for what the recipe leaves to it; only then is one built here."""
    dataset = table.get("dataset")
    own = {"use": dataset} if isinstance(dataset, str) else dataset
    if not isinstance(own, dict):
        return {}
    tried = _Resolver(catalog)
    tried.part("dataset", own, "dataset")
    # A word that fits, such as the name of a folder, is no question.
    wrong = {problem.place for problem in tried.problems}
    asked = {n for n, v in own.items() if v == AUTO and _join("dataset", n) in wrong}
    resolver = _Resolver(catalog)
    own = {name: value for name, value in own.items() if name not in asked}
    node = resolver.part("dataset", own, "dataset")
    if node is None or resolver.problems:
        return {}  # which is said when all is checked

    from celstack.recipe.build import build_part

    part = build_part(source, node, catalog)
    try:
        suggested: dict[str, Any] = part.suggest()
    # A dataset that objects in another way objects to what the recipe says, too.
    except Exception as error:
        told = str(error) if isinstance(error, CelstackError) else describe_error(error)
        raise RecipeError(source, [Problem("dataset", told)]) from error
    return suggested


def signature_of(catalog: Catalog, kind: str, name: str) -> Signature:
    """Return what a plugin's constructor takes, importing it only if its source is unclear."""
    entry = catalog.find(kind, name).entry
    try:
        if entry.attr:
            raise TooClever("what is registered is not the module")
        return read_plugin(entry.module, KINDS[kind].hook, name)
    except TooClever:
        return inspect_class(catalog.load(kind, name))


def settings_signature(name: str) -> Signature:
    """Return what a class of ``celstack.recipe.assembly`` takes."""
    try:
        return read_class(ASSEMBLY_MODULE, name)
    except TooClever:  # installed without its source
        return inspect_class(getattr(import_module(ASSEMBLY_MODULE), name))


class _Resolver:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.problems: list[Problem] = []
        self.excused: set[str] = set()
        """Places of which nothing can be said, because another problem comes first."""

    def settings(self, name: str, table: Any, place: str) -> Node:
        if not isinstance(table, Mapping):
            self._complain(place, f"must be a table, not {format_value(table)}")
            return Node(place, name, "", {})
        return Node(place, name, "", self._options(settings_signature(name), table, place, ""))

    def part(self, kind: str, table: Any, place: str) -> Node | None:
        if isinstance(table, str):
            table = {"use": table}
        if not isinstance(table, Mapping):
            text = f"must be a table that says which {kind} to use, not {format_value(table)}"
            self._complain(place, text)
            return None
        use = table.get("use")
        if not isinstance(use, str):
            missing = (
                "is missing" if use is None else f"must be a string, not {format_value(use)}"
            )
            self._complain(_join(place, "use"), f"{missing} ({self._known(kind)})")
            return None
        try:
            signature = signature_of(self.catalog, kind, use)
        except CelstackError as error:
            self._complain(_join(place, "use"), str(error))
            return None
        options = {key: value for key, value in table.items() if key != "use"}
        return Node(place, kind, use, self._options(signature, options, place, use))

    def check_stages(self, root: Node) -> None:
        """A stage that names a transform the recipe has not would do nothing, silently."""
        chains = root.options["transforms"].options.values()
        known = sorted({node.use for chain in chains for node in chain})
        for stage in root.options["stages"]:
            for index, name in enumerate(stage.options["transforms"] or ()):
                if name not in known:
                    text = f"the recipe has no transform {format_value(name)}"
                    text += (
                        f"{did_you_mean(name, known)} (it has: {', '.join(known) or 'none'})"
                    )
                    self._complain(f"{stage.place}.transforms[{index}]", text)

    def _options(
        self, signature: Signature, table: Mapping[str, Any], place: str, use: str
    ) -> dict[str, Any]:
        for key in table:
            if key not in signature.names():
                self._complain(_join(place, key), _unknown(key, place, use, signature.names()))
        return {option.name: self._option(option, table, place) for option in signature.options}

    def _option(self, option: Option, table: Mapping[str, Any], place: str) -> Any:
        where = _join(place, option.name)
        if option.name in table:
            return self._value(option.annotation, table[option.name], where)
        if option.default is REQUIRED:
            kind = _kind_name(option.annotation)
            wanted = self._known(kind) if kind else f"it must be {describe(option.annotation)}"
            self._complain(where, f"is missing; {wanted}")
            return None
        if _settings_name(option.annotation):
            return self._value(option.annotation, {}, where)
        try:
            return fit(option.default, option.annotation)
        except Misfit:  # a default may be what no recipe can say
            return option.default

    def _value(self, annotation: Any, value: Any, place: str) -> Any:
        annotation = _without_none(annotation)
        inner = get_args(annotation)[0] if get_origin(annotation) is list else None
        if kind := _kind_name(annotation):
            return self.part(kind, value, place)
        if name := _settings_name(annotation):
            return self.settings(name, value, place)
        if _kind_name(inner) or _settings_name(inner):
            return self._list(inner, value, place)
        try:
            return fit(value, annotation)
        except Misfit as misfit:
            self._complain(place + misfit.place, misfit.text)
            return None

    def _list(self, inner: Any, value: Any, place: str) -> list[Node]:
        if not isinstance(value, list):
            hint = f"; write [[{place}]], with two brackets" if isinstance(value, dict) else ""
            self._complain(place, f"must be a list, not {format_value(value)}{hint}")
            return []
        items = [self._value(inner, item, f"{place}[{n}]") for n, item in enumerate(value)]
        return [item for item in items if item is not None]

    def _known(self, kind: str) -> str:
        return f"known {kind}s: {', '.join(self.catalog.names(kind)) or 'none'}"

    def _complain(self, place: str, text: str) -> None:
        if place not in self.excused:
            self.problems.append(Problem(place, text))


def _unknown(key: str, place: str, use: str, known: list[str]) -> str:
    if not place:
        return f"there is no such section{did_you_mean(key, known)} (known: {', '.join(known)})"
    return f"{use or place} takes {', '.join(known) or 'no options'}{did_you_mean(key, known)}"


def _join(place: str, key: str) -> str:
    return f"{place}.{quote_key(key)}" if place else quote_key(key)


def _without_none(annotation: Any) -> Any:
    """Reduce ``X | None`` to X: a recipe says None by saying nothing."""
    if get_origin(annotation) in (Union, UnionType):
        inner = [choice for choice in get_args(annotation) if choice is not NoneType]
        if len(inner) == 1:
            return inner[0]
    return annotation


def _kind_name(annotation: Any) -> str:
    kind = KIND_OF_INTERFACE.get(getattr(annotation, "__name__", ""))
    return kind.name if kind else ""


def _settings_name(annotation: Any) -> str:
    name = getattr(annotation, "__name__", "")
    return name if name in SETTINGS else ""

"""Recipe and catalog to a resolved recipe: all mistakes at once, each with its place.

The schema is that of constructors all the way down: the recipe's own is ``Assembly``'s,
a part's table is its class's. Nothing is built here, and torch is not imported unless a
plugin's source does not say plainly what its constructor takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from celstack.catalog import Catalog
from celstack.errors import CelstackError, Problem, RecipeError, did_you_mean
from celstack.kinds import KIND_OF_INTERFACE, KINDS
from celstack.options import (
    REQUIRED,
    SETTINGS,
    Option,
    Signature,
    TooClever,
    inspect_class,
    read_class,
    read_plugin,
)
from celstack.recipe import Recipe
from celstack.values import Misfit, fit

ROOT = "Assembly"
ASSEMBLY_MODULE = "celstack.assembly"


class Node(NamedTuple):
    """A table of the recipe that has been checked: a part, or settings of the core."""

    place: str
    kind: str
    """The part's kind, or the name of the settings."""
    use: str
    """The plugin's name; empty for settings."""
    options: dict[str, Any]

    def as_table(self) -> dict[str, Any]:
        """Return what a recipe would say to get exactly this."""
        table = {"use": self.use} if self.use else {}
        said = {key: _as_toml(value) for key, value in self.options.items()}
        return {**table, **{key: value for key, value in said.items() if value is not None}}


class ResolvedRecipe(NamedTuple):
    """A recipe without mistakes, in which every option has its value."""

    name: str
    source: str
    root: Node

    def as_table(self) -> dict[str, Any]:
        """Return a recipe that says everything and extends nothing."""
        return self.root.as_table()


def resolve(recipe: Recipe, catalog: Catalog) -> ResolvedRecipe:
    """Check every word of a recipe, or raise RecipeError with all that is wrong."""
    resolver = _Resolver(catalog)
    root = resolver.settings(ROOT, recipe.table, "")
    if not resolver.problems:
        resolver.check_stages(root)
    if resolver.problems:
        raise RecipeError(recipe.source, resolver.problems)
    return ResolvedRecipe(recipe.name, recipe.source, root)


def signature_of(catalog: Catalog, kind: str, name: str) -> Signature:
    """Return what a plugin's constructor takes, importing it only if its source is unclear."""
    plugin = catalog.find(kind, name)
    try:
        return read_plugin(plugin.entry.module, KINDS[kind].hook, name)
    except TooClever:
        return inspect_class(catalog.load(kind, name))


class _Resolver:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.problems: list[Problem] = []

    def settings(self, name: str, table: Any, place: str) -> Node:
        if not isinstance(table, Mapping):
            self._complain(place, f"must be a table, not {table!r}")
            return Node(place, name, "", {})
        signature = read_class(ASSEMBLY_MODULE, name)
        return Node(place, name, "", self._options(signature, table, place, ""))

    def part(self, kind: str, table: Any, place: str) -> Node | None:
        if isinstance(table, str):
            table = {"use": table}
        if not isinstance(table, Mapping):
            self._complain(place, f"must be a table that says which {kind} to use")
            return None
        use = table.get("use")
        if not isinstance(use, str):
            missing = "is missing" if use is None else f"must be a string, not {use!r}"
            known = ", ".join(self.catalog.names(kind))
            self._complain(_join(place, "use"), f"{missing} (known: {known})")
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
                    text = f"the recipe has no transform '{name}'{did_you_mean(name, known)}"
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
            self._complain(where, "is missing")
            return None
        if _settings_name(option.annotation):
            return self._value(option.annotation, {}, where)
        return option.default

    def _value(self, annotation: Any, value: Any, place: str) -> Any:
        annotation = _without_none(annotation)
        if get_origin(annotation) is list and isinstance(value, list):
            inner = get_args(annotation)[0]
            if _kind_name(inner) or _settings_name(inner):
                items = [self._value(inner, v, f"{place}[{n}]") for n, v in enumerate(value)]
                return [item for item in items if item is not None]
        if kind := _kind_name(annotation):
            return self.part(kind, value, place)
        if name := _settings_name(annotation):
            return self.settings(name, value, place)
        try:
            return fit(value, annotation)
        except Misfit as misfit:
            self._complain(place + misfit.place, misfit.text)
            return None

    def _complain(self, place: str, text: str) -> None:
        self.problems.append(Problem(place, text))


def _unknown(key: str, place: str, use: str, known: list[str]) -> str:
    if not place:
        return f"there is no such section{did_you_mean(key, known)} (known: {', '.join(known)})"
    return f"{use or place} takes {', '.join(known) or 'no options'}{did_you_mean(key, known)}"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _without_none(annotation: Any) -> Any:
    """Reduce ``X | None`` to X where X is a table: a recipe says None by saying nothing."""
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


def _as_toml(value: Any) -> Any:
    if isinstance(value, Node):
        return value.as_table()
    if isinstance(value, list | tuple):
        return [_as_toml(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_toml(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)

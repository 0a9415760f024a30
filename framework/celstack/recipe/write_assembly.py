"""From an assembly to its recipe, so that a run made in Python is a run like any other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from celstack.errors import Problem, RecipeError
from celstack.interfaces.observer import Observer
from celstack.interfaces.part import UNKNOWN, Part, constructor_arguments
from celstack.keypath import join
from celstack.recipe.assembly import Assembly
from celstack.recipe.load import Recipe
from celstack.recipe.merge import Table
from celstack.recipe.resolve import ROOT, resolve
from celstack.recipe.resolved import Node, ResolvedRecipe
from celstack.registry.catalog import Catalog
from celstack.registry.kinds import KINDS
from celstack.registry.signature import SETTINGS

SOURCE = "assembly"
HEADING = "# Written from an assembly that was made in Python.\n"


class AssemblyRecipe(NamedTuple):
    """The recipe of an assembly, and what of the assembly no recipe can express."""

    resolved: ResolvedRecipe
    problems: list[Problem]
    """Parts that have ``use = "module:Class"``, which names no plugin: scores of the run can
    be read and compared, but its model cannot be built from the recipe."""
    left_out: list[Problem]
    """Observers that the recipe does not have; nothing that a run learns depends on them."""


def recipe_of(assembly: Assembly, catalog: Catalog) -> AssemblyRecipe:
    """Write an assembly as a recipe."""
    import tomli_w

    writer = _Writer(catalog)
    observers, left_out = writer.observers(assembly.observers)
    table = writer.settings(assembly, "", skip="observers") | {"observers": observers}
    name, text = assembly.dataset.name, HEADING + tomli_w.dumps(table)
    problems = writer.problems
    if not problems:
        try:
            resolved = resolve(Recipe(name, SOURCE, table, text), catalog)
            return AssemblyRecipe(resolved, [], left_out)
        except RecipeError as error:
            problems = error.problems
    root, packages = Node("", ROOT, "", table), writer.packages
    resolved = ResolvedRecipe(name, SOURCE, root, text, runnable=False, packages=packages)
    return AssemblyRecipe(resolved, problems, left_out)


class _NotWritableError(Exception):
    """A value that no recipe can express: its path, and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Writer:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.problems: list[Problem] = []
        self.packages: dict[str, tuple[str, str]] = {}
        """Package and version of every plugin in use, by the name of its entry point."""

    def settings(self, value: Any, place: str, skip: str = "") -> Table:
        """Write all fields of a settings class except one, and those that are None."""
        fields = [field.name for field in attrs.fields(type(value)) if field.name != skip]
        given = {name: getattr(value, name) for name in fields}
        written, problems = self._write_all(
            {name: inner for name, inner in given.items() if inner is not None}, place
        )
        self.problems += problems
        return written

    def observers(self, observers: list[Observer]) -> tuple[list[Table], list[Problem]]:
        """Write the observers that a recipe can express; return what is wrong with others."""
        written, problems = [], []
        for index, observer in enumerate(observers):
            alone = _Writer(self.catalog)
            table = alone.part(observer, f"observers[{index}]")
            if alone.problems:
                problems += alone.problems
            else:
                written.append(table)
                self.packages |= alone.packages
        return written, problems

    def part(self, part: Part, place: str) -> Table:
        """Write the plugin's name and the arguments that the part was constructed with."""
        kind = next(k for k in KINDS.values() if isinstance(part, k.load_interface()))
        use = self.catalog.name_of(kind.name, type(part), part.name)
        options, problems = self._write_all(_given_arguments(part), place)
        if use is not None:
            plugin = self.catalog.find(kind.name, use)
            self.packages[plugin.entry.name] = (plugin.package, plugin.version)
        else:
            problems = [Problem(place, f"{type(part).__name__} is not an installed plugin")]
        if problems:
            self.problems += problems
            use = f"{type(part).__module__}:{type(part).__qualname__}"
        return {"use": use, **options}

    def _write_all(self, values: Mapping[str, Any], place: str) -> tuple[Table, list[Problem]]:
        written, problems = {}, []
        for name, value in values.items():
            try:
                written[name] = self.value(value, join(place, name))
            except _NotWritableError as error:
                problems.append(error.problem)
        return written, problems

    def value(self, value: Any, place: str) -> Any:
        """Write a value as TOML has it, or raise _NotWritableError."""
        if value is UNKNOWN:
            raise _NotWritableError(Problem(place, "its value is not known any more"))
        if isinstance(value, Part):
            return self.part(value, place)
        if type(value).__name__ in (*SETTINGS, ROOT) and attrs.has(type(value)):
            return self.settings(value, place)
        if isinstance(value, list | tuple):
            return [self.value(item, join(place, index)) for index, item in enumerate(value)]
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {key: self.value(item, join(place, key)) for key, item in value.items()}
        if isinstance(value, Path):
            return str(value)
        # Numbers of numpy are subclasses, which are not written as TOML.
        for plain in (bool, int, float, str):
            if isinstance(value, plain):
                return plain(value)
        if isinstance(value, date | time):
            return value
        text = f"a value of type {type(value).__name__} cannot be written in a recipe"
        raise _NotWritableError(Problem(place, text))


def _given_arguments(part: Part) -> dict[str, Any]:
    """Return the arguments of a part's constructor that differ from their defaults."""
    given: dict[str, Any] = {}
    arguments = constructor_arguments(part)
    for parameter in signature(type(part)).parameters.values():
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        if parameter.kind is Parameter.VAR_KEYWORD:
            given |= value
        elif value is not parameter.default:
            given[parameter.name] = value
    return given

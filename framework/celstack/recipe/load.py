"""Load recipes: TOML, ``extends`` and overrides, merged into one table. Loads no plugin."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from celstack.errors import CelstackError
from celstack.recipe.merge import MAX_DEPTH, Table, merge, too_deep
from celstack.recipe.overrides import Override, override
from celstack.text import did_you_mean, format_value


class Recipe(NamedTuple):
    """A recipe with everything it extends and all overrides merged in."""

    name: str
    source: str
    table: Table
    text: str = ""
    """The unmodified text of the file."""


def bundled_folder() -> Path:
    """Return the folder of the recipes that come with Celstack."""
    spec = find_spec("celstack_recipes")
    if spec is None or spec.origin is None:
        raise CelstackError("the bundled recipes are not installed; install celstack again")
    return Path(spec.origin).parent


def bundled_names() -> list[str]:
    """List the names of the bundled recipes."""
    folder = bundled_folder()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.toml"))


def find_recipe(name: str) -> Path:
    """Find a recipe by its path, or by the name of a bundled one."""
    found = _find_in((Path(), bundled_folder()), name)
    if found:
        return found
    if os.path.isdir(name):  # noqa: PTH112
        raise CelstackError(f"{name}: is a folder, not a recipe")
    bundled = bundled_names()
    stems = [known.removesuffix(".toml") for known in bundled]
    hint = did_you_mean(Path(name).name, bundled) or did_you_mean(Path(name).name, stems)
    raise CelstackError(
        f"{name}: no such recipe, here or among the bundled ones{hint} "
        "('celstack recipes' lists them)"
    )


def _find_in(folders: Iterable[Path], name: str) -> Path | None:
    for folder in folders:
        for path in (folder / name, folder / f"{name}.toml"):
            # Path.is_file raises for names that no file can have.
            if os.path.isfile(path):  # noqa: PTH113
                return path
    return None


def read_recipe(name: str, overrides: Iterable[str | Override] = ()) -> Recipe:
    """Load a recipe by name, with what it extends, and apply ``path=value`` overrides."""
    path = find_recipe(name)
    table = _read_extended(path, ())
    override(table, overrides)
    return Recipe(path.stem, str(name), table, _read_text(path))


def _read_extended(path: Path, above: tuple[Path, ...]) -> Table:
    if path.resolve() in above:
        chain = " -> ".join(p.name for p in (*above, path))
        raise CelstackError(f"{above[-1].name}: extends: a cycle: {chain}")
    table = _read_toml(path)
    parent = table.pop("extends", None)
    if parent is None:
        return table
    if not isinstance(parent, str):
        raise CelstackError(
            f"{path.name}: extends: must be the name of a recipe, not {format_value(parent)}"
        )
    found = _find_in((path.parent, bundled_folder()), parent)
    if found is None:
        raise CelstackError(
            f"{path.name}: extends: there is no {format_value(parent)}, "
            f"neither beside it nor among the bundled recipes"
            f"{did_you_mean(parent, bundled_names())}"
        )
    below = _read_extended(found, (*above, path.resolve()))
    if "published" in table:
        # Published figures belong to one experiment and are not merged.
        below.pop("published", None)
    return merge(below, table)


def _read_text(path: Path) -> str:
    try:
        # Some editors write a byte order mark.
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CelstackError(f"{path.name}: not a text file in UTF-8: {error.reason}") from error
    except OSError as error:
        raise CelstackError(f"{path.name}: cannot be read: {error.strerror}") from error


def _read_toml(path: Path) -> Table:
    text = _read_text(path)
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        end = f"at line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
        reason = str(error).replace("at end of document", end)
        raise CelstackError(f"{path.name}: not valid TOML: {reason}") from error
    except RecursionError:
        raise CelstackError(f"{path.name}: not valid TOML: nested too deeply") from None
    if too_deep(table):
        raise CelstackError(f"{path.name}: tables are nested more than {MAX_DEPTH} deep")
    return table

"""From TOML files to one table: syntax, ``extends``, overrides. No plugin is loaded here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from celstack.errors import CelstackError, did_you_mean

Table = dict[str, Any]


class Recipe(NamedTuple):
    """What a recipe says, with everything it extends and all overrides worked in."""

    name: str
    source: str
    table: Table


def bundled_folder() -> Path:
    """Return the folder of the recipes that come with Celstack."""
    spec = find_spec("celstack_recipes")
    if spec is None or spec.origin is None:
        raise CelstackError("the bundled recipes are not installed; install celstack again")
    return Path(spec.origin).parent


def bundled_names() -> list[str]:
    """List the bundled recipes, as one would type them."""
    folder = bundled_folder()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.toml"))


def find_recipe(name: str) -> Path:
    """Find a recipe by a path as given, or else among the bundled ones."""
    tried = [
        Path(name),
        Path(f"{name}.toml"),
        bundled_folder() / name,
        bundled_folder() / f"{name}.toml",
    ]
    for path in tried:
        if path.is_file():
            return path
    if Path(name).is_dir():
        raise CelstackError(f"{name}: is a folder, not a recipe")
    hint = did_you_mean(name, bundled_names())
    raise CelstackError(
        f"{name}: no such recipe, here or among the bundled ones{hint} "
        "('celstack recipes' lists them)"
    )


def read_recipe(name: str, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe by name, with what it extends, and apply ``path=value`` overrides."""
    path = find_recipe(name)
    table = _read_extended(path, ())
    # A new 'use' starts its table afresh, so it must come before the table's options.
    pairs = sorted(
        (_parse_override(text) for text in overrides), key=lambda p: p[0][-1] != "use"
    )
    for keys, value in pairs:
        _override(table, keys, value)
    return Recipe(path.stem, str(name), table)


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
            f"{path.name}: extends: must be the name of a recipe, not {parent!r}"
        )
    candidates = (path.parent / parent, bundled_folder() / parent)
    for candidate in candidates:
        if candidate.is_file():
            return merge(_read_extended(candidate, (*above, path.resolve())), table)
    raise CelstackError(
        f"{path.name}: extends: there is no {parent}, "
        "neither beside it nor among the bundled recipes"
    )


def _read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CelstackError(f"{path.name}: not valid TOML: {error}") from error
    except UnicodeDecodeError as error:
        raise CelstackError(f"{path.name}: not a text file in UTF-8: {error.reason}") from error
    except RecursionError:
        raise CelstackError(f"{path.name}: not valid TOML: nested too deeply") from None
    except OSError as error:
        raise CelstackError(f"{path.name}: cannot be read: {error.strerror}") from error


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Table:
    """Lay one table over another; lists are replaced, and so is a part by another part."""
    if "use" in above and above["use"] != below.get("use"):
        return dict(above)
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping) and key in merged:
            value = merge(_as_table(merged[key]), value)
        merged[key] = value
    return merged


def _as_table(value: Any) -> Mapping[str, Any]:
    """Read ``selector = "greedy"`` as the table it is short for."""
    if isinstance(value, str):
        return {"use": value}
    return value if isinstance(value, Mapping) else {}


def _parse_override(text: str) -> tuple[list[str | int], Any]:
    path, equals, value = text.partition("=")
    pieces = re.findall(r"[A-Za-z_][\w-]*|\d+", path)
    # Rebuilt from its pieces, the path must be what was typed.
    tidy = re.fullmatch(r"\s*[A-Za-z_][\w-]*(\.[\w-]+|\[\d+\])*\s*", path)
    if not equals or not tidy or not pieces:
        raise CelstackError(
            f"--set {text}: write path=value, as in selector.sweeps=3 "
            "or transforms.layer[0].use=color"
        )
    return [int(p) if p.isdigit() else p for p in pieces], _parse_value(text, value.strip())


def _parse_value(text: str, value: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {value}")
        if set(parsed) == {"value"}:
            return parsed["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    # A bare word is a string: nobody wants to quote quotes for the shell.
    if value and value[0] not in "[{\"'" and "\n" not in value:
        return value
    raise CelstackError(f"--set {text}: {value or 'nothing'} is not a TOML value")


def _override(table: Table, keys: list[str | int], value: Any) -> None:
    at: Any = table
    for depth, key in enumerate(keys[:-1]):
        at = _step_into(at, key, keys[: depth + 1])
    last = keys[-1]
    if isinstance(at, dict) and isinstance(last, str):
        merged = merge(at, {last: value})
        at.clear()
        at.update(merged)
    else:
        _step_into(at, last, keys)
        at[last] = value


def _step_into(at: Any, key: str | int, keys: list[str | int]) -> Any:
    if isinstance(at, dict) and isinstance(key, str):
        at.setdefault(key, {})
    elif not isinstance(at, list) or not isinstance(key, int):
        raise CelstackError(f"--set {_spell(keys)}: there is no such place in the recipe")
    elif key >= len(at):
        raise CelstackError(f"--set {_spell(keys)}: that list has only {len(at)} items")
    if isinstance(at[key], str):
        at[key] = dict(_as_table(at[key]))
    return at[key]


def _spell(keys: list[str | int]) -> str:
    spelt = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return spelt.removeprefix(".")

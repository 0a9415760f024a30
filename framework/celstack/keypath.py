"""Key paths: where a value stands in nested tables, as in ``transforms.layer[1].use``."""

from __future__ import annotations

from collections.abc import Iterable

from celstack.text import format_value


def format_path(keys: Iterable[str | int]) -> str:
    """Write keys of tables and indices of lists as one path."""
    return "".join(map(format_step, keys)).removeprefix(".")


def join(place: str, key: str | int) -> str:
    """Append one key or index to a path; an empty path is that of the whole table."""
    return place + format_step(key) if place else format_path([key])


def format_step(key: str | int) -> str:
    """Write one step of a path: ``[2]`` for an index, ``.key`` for a key of a table."""
    return f"[{key}]" if isinstance(key, int) else f".{quote_key(key)}"


def quote_key(key: str) -> str:
    """Quote a key unless it is a bare key of TOML."""
    bare = key.replace("-", "_").replace("_", "a")
    return key if bare.isascii() and bare.isalnum() else format_value(key)

"""Lazy public names: a package exports names of its modules and imports them when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package.

    Args:
        package: The package's ``__name__``.
        homes: The module of each public name, relative to the package.

    Example:
        >>> __getattr__ = lazy_names(__name__, {"find_file": "paths"})
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return __getattr__

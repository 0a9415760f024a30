"""Lazy exports: packages that import their public names on first use, because of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that exports names of its submodules.

    In the package's ``__init__.py``, beside a literal ``__all__`` and imports for type
    checkers under ``if TYPE_CHECKING``::

        _HOME = {"Windows": "windows", "extent": "sampling"}
        __getattr__ = lazy_getattr(__name__, _HOME)

    Args:
        package: The name of the package.
        homes: The submodule that defines each name, relative to the package.
    """

    def getattr_lazily(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return getattr_lazily

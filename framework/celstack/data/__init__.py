"""Data: from files to batches, where files are searched, and how they are downloaded.

Public. Uses the interfaces; knows nothing of models or recipes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celstack.data.images import formats
    from celstack.data.paths import cache, find, look, places

# Imported when first used, to keep imports of the package cheap.
_HOME = {
    "cache": "paths",
    "find": "paths",
    "formats": "images",
    "look": "paths",
    "places": "paths",
}

__all__ = [
    "cache",
    "find",
    "formats",
    "look",
    "places",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'celstack.data' has no attribute '{name}'")
    return getattr(import_module(f"celstack.data.{_HOME[name]}"), name)

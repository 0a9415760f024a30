"""Load installed plugins in tests."""

from __future__ import annotations

from typing import Any

from celstack.registry.catalog import Catalog


def load_plugin(kind: str, name: str) -> type[Any]:
    """Load an installed plugin by its name, as recipes do.

    Args:
        kind: The kind of plugin, such as ``"transform"``.
        name: Its name in recipes.

    Returns:
        The plugin's class.

    Raises:
        CelstackError: There is no such plugin, or it is broken.

    Example:
        >>> assert load_plugin("transform", "similarity") is Similarity
    """
    return Catalog().load(kind, name)

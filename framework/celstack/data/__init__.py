"""Data: from files to batches, where files are searched, and how they are downloaded.

Public. Uses the interfaces; knows nothing of models or recipes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

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

__getattr__ = lazy_getattr(__name__, _HOME)

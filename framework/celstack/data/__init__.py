"""Data: from files to batches, where files are found, and how they are downloaded.

Public: what dataset plugins need. Uses the interfaces; knows nothing of models or recipes.

    from celstack.data import require_file

    path = require_file(self.name, self.root, ["train_32x32.mat"], self.remedy)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy import lazy_names

if TYPE_CHECKING:
    from celstack.data.images import (
        ImageFile,
        find_images,
        read_center_cropped,
        readable_formats,
    )
    from celstack.data.paths import (
        cache_dir,
        data_dirs,
        describe_data_dirs,
        find_file,
        require_file,
    )

# Imported when they are first used, to keep the import of this package fast.
_HOME = {
    "ImageFile": "images",
    "cache_dir": "paths",
    "data_dirs": "paths",
    "describe_data_dirs": "paths",
    "find_file": "paths",
    "find_images": "images",
    "read_center_cropped": "images",
    "readable_formats": "images",
    "require_file": "paths",
}

__all__ = [
    "ImageFile",
    "cache_dir",
    "data_dirs",
    "describe_data_dirs",
    "find_file",
    "find_images",
    "read_center_cropped",
    "readable_formats",
    "require_file",
]

__getattr__ = lazy_names(__name__, _HOME)

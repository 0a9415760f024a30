"""Where published data and caches are on this machine.

`data_dirs` lists the folders that are searched; `find_file` and `require_file` search them.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from celstack.errors import CelstackError


def data_dirs(root: Path | None) -> list[Path]:
    """Return the folders to search for data, in order; they need not exist.

    Args:
        root: The only folder to search. None searches the folder that the environment
            variable CELSTACK_DATA names, if it is set, and then `cache_dir`.
    """
    if root is not None:
        return [_expand(root, str(root))]
    named = os.environ.get("CELSTACK_DATA")
    return [*([_expand(Path(named), f"CELSTACK_DATA: {named}")] if named else []), cache_dir()]


def cache_dir() -> Path:
    """Return the user's cache folder for Celstack; it need not exist.

    ``$XDG_CACHE_HOME/celstack`` if that variable is set, on any system; else ``celstack`` in
    the system's cache folder, such as ``~/.cache`` on Linux.
    """
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "celstack"
    from platformdirs import user_cache_path

    # Neither an author's folder nor a "Cache" folder below, which Windows would have: 0.1.0
    # had none of them, and its files must be found.
    return user_cache_path("celstack", appauthor=False, opinion=False)


def find_file(root: Path | None, names: Sequence[str]) -> Path | None:
    """Return the first file or folder of one of these names in `data_dirs`, or None.

    Args:
        root: The only folder to search, as of `data_dirs`.
        names: File or folder names, relative to the folder; earlier ones are preferred.
    """
    candidates = (folder / name for folder in data_dirs(root) for name in names)
    # Not path.exists(), which raises where a folder may not be read.
    return next((path for path in candidates if os.path.exists(path)), None)  # noqa: PTH110


def require_file(
    dataset: str, root: Path | None, names: Sequence[str], remedy: str = ""
) -> Path:
    """Return what `find_file` finds, or raise an error that says where it was searched.

    Args:
        dataset: The dataset's name, for the message.
        root: The only folder to search, as of `data_dirs`.
        names: File or folder names; earlier ones are preferred.
        remedy: How to get the files, for the message; a dataset passes its ``remedy``.

    Raises:
        CelstackError: None of the files exists.

    Example:
        >>> path = require_file(self.name, self.root, ["train_32x32.mat"], self.remedy)
    """
    found = find_file(root, names)
    if found is None:
        held = "root names the folder" if root else "set root or CELSTACK_DATA to the folder"
        advice = f"{remedy}; {held}" if remedy else held
        missing = f"no {' or '.join(names)} in {describe_data_dirs(root)}"
        raise CelstackError(f"{dataset}: {missing}; {advice} that holds it")
    return found


def describe_data_dirs(root: Path | None) -> str:
    """Return `data_dirs` as text, with a note on those that may not be read."""
    return ", ".join(
        f"{folder} (permission denied)" if _is_unreadable(folder) else str(folder)
        for folder in data_dirs(root)
    )


def _is_unreadable(folder: Path) -> bool:
    return os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK)  # noqa: PTH112


def _expand(path: Path, source: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise CelstackError(f"{source}: unknown user in the path") from error

"""Where published data is looked for on this machine."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from celstack.errors import CelstackError


def places(root: Path | None) -> list[Path]:
    """List the folders to look in: ``root`` alone, else CELSTACK_DATA and the user's cache."""
    if root is not None:
        # Only there: data from elsewhere would not be what was asked for.
        return [_expanded(root, str(root))]
    named = os.environ.get("CELSTACK_DATA")
    return [*([_expanded(Path(named), f"CELSTACK_DATA: {named}")] if named else []), cache()]


def cache() -> Path:
    """Return the user's cache folder for Celstack; it need not exist."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "celstack"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~")).expanduser() / "celstack"
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(home).expanduser() / "celstack"


def look(root: Path | None, names: Sequence[str]) -> Path | None:
    """Return the first of these files or folders that is in one of the places."""
    tried = (place / name for place in places(root) for name in names)
    # Not path.exists(), which fails where a folder may not be looked into.
    return next((path for path in tried if os.path.exists(path)), None)  # noqa: PTH110


def spell_places(root: Path | None) -> str:
    """List the places for a reader, and say which of them are closed to us."""
    return ", ".join(
        f"{place} (which may not be read)" if _closed(place) else str(place)
        for place in places(root)
    )


def find(dataset: str, root: Path | None, names: Sequence[str], remedy: str = "") -> Path:
    """Return the first of these files or folders, or say where they were looked for.

    ``remedy`` says how to come by them; a dataset passes its ``remedy``.
    """
    found = look(root, names)
    if found is None:
        held = "root names the folder" if root else "set root or CELSTACK_DATA to the folder"
        advice = f"{remedy}; {held}" if remedy else held
        missing = f"no {' or '.join(names)} in {spell_places(root)}"
        raise CelstackError(f"{dataset}: {missing}; {advice} that holds it")
    return found


def _closed(place: Path) -> bool:
    return os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK)  # noqa: PTH112


def _expanded(path: Path, said: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise CelstackError(f"{said}: nobody here has a home of that name") from error

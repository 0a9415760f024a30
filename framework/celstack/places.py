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
        return [root.expanduser()]
    named = os.environ.get("CELSTACK_DATA")
    return [*([Path(named).expanduser()] if named else []), cache()]


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
    return next((path for path in tried if path.exists()), None)


def find(dataset: str, root: Path | None, names: Sequence[str], remedy: str = "") -> Path:
    """Return the first of these files or folders, or say where they were looked for.

    ``remedy`` says how to come by them; a dataset passes its ``remedy``.
    """
    found = look(root, names)
    if found is None:
        tried = ", ".join(str(place) for place in places(root))
        held = "root names the folder" if root else "set root or CELSTACK_DATA to the folder"
        advice = f"{remedy}; {held}" if remedy else held
        wanted = " or ".join(names)
        raise CelstackError(f"{dataset}: no {wanted} in {tried}; {advice} that holds it")
    return found

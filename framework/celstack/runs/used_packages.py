"""The packages of the plugins that a run used, from its ``environment.json``."""

from __future__ import annotations

import json
import re
from pathlib import Path

PACKAGE = re.compile(r"[0-9A-Za-z]([0-9A-Za-z._-]{0,100}[0-9A-Za-z])?")
VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]{0,40}")


def read_used_packages(folder: Path) -> dict[str, str]:
    """Return which package and version each plugin of a run came from.

    Returns:
        Requirements by the names of entry points: ``{"metric-gloss": "acme-parts==0.3"}``.
        Empty for a run of 0.1.0. What is damaged is skipped.
    """
    try:
        found = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
        plugins, versions = found["plugins"], found["packages"]
        pairs = {name: (package, versions[package]) for name, package in plugins.items()}
        # They become part of a command that users may copy.
        return {
            name: f"{package}=={version}"
            for name, (package, version) in pairs.items()
            if PACKAGE.fullmatch(package) and VERSION.fullmatch(version)
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}

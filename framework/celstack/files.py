"""Files that appear whole: written beside their place, then moved into it."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from celstack.errors import CelstackError


@contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """Make a folder for drafts in ``out``, which is made, too; or say why that cannot be."""
    draft = out / f".draft-{os.getpid()}"
    try:
        draft.mkdir(parents=True, exist_ok=True)
        yield draft
    except OSError as error:
        reason = error.strerror or error
        raise CelstackError(f"{out}: cannot write there: {reason}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def deliver(draft: Path, folder: Path) -> None:
    """Move all files of a draft to where they belong, each in place of the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(draft.iterdir()):
        path.replace(folder / path.name)


def write_whole(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file so that whoever reads it finds the old one or the new, whole.

    That is so after a loss of power, too.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        # A full disk needs the room, and nobody the half; nor when it is interrupted.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def to_json(value: Any) -> str:
    """Spell a value as JSON, which has no word for what is not a number but null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

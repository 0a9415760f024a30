"""Atomic writes: files are written beside their final path, then moved to it."""

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
def staging_dir(out: Path) -> Iterator[Path]:
    """Create a temporary folder inside ``out``, and remove it in the end.

    ``out`` is created, too. Files are written to the temporary folder and then moved with
    `commit`, so that readers of ``out`` never see a partly written file.

    Raises:
        CelstackError: Something inside the block cannot be written.

    Example:
        >>> with staging_dir(out) as staging:
        ...     picture.save(staging / "sheet.png")
        ...     commit(staging, out)
    """
    staging = out / f".draft-{os.getpid()}"
    try:
        staging.mkdir(parents=True, exist_ok=True)
        yield staging
    except OSError as error:
        reason = error.strerror or error
        raise CelstackError(f"{out}: cannot write there: {reason}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def commit(staging: Path, folder: Path) -> None:
    """Move all files of a staging folder to ``folder``, replacing those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(staging.iterdir()):
        path.replace(folder / path.name)


def write_atomic(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file so that readers see either the old or the new content, never a part.

    This holds after a power loss, too: the content is flushed to disk before the file moves.
    Text is written in UTF-8; lone surrogates, which files of others may contain, are escaped.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        # Free the space on failure (the disk may be full) and on Ctrl-C.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def to_json(value: Any) -> str:
    """Encode a value as indented JSON; NaN and infinity, which JSON lacks, become null."""
    return json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """Return a value of JSON with None in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

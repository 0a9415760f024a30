"""Drafts: files are made in a hidden folder and come out of it whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

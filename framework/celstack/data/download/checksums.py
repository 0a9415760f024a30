"""Compare a file with what its owners, or their server, say of it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Source

CHUNK = 2**18

Report = Callable[[str, int, int | None], None]
"""Hears what is being done, how many bytes of it are done, and of how many if known."""


def compare(source: Source, path: Path, report: Report) -> str:
    """Say what is wrong with a file that should be as published; nothing if nothing is."""
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"it has {size} bytes, not the published {source.size}"
    kind, _, published = source.checksum.partition(":")
    if published and (found := digest(kind, path, report)) != published:
        return f"its {kind} is {found}, not the published {published}"
    return ""


def digest(kind: str, path: Path, report: Report) -> str:
    """Return a file's checksum in hexadecimal."""
    summed = hashlib.new(kind, usedforsecurity=False)
    total, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            summed.update(chunk)
            done += len(chunk)
            report("checking", done, total)
    return summed.hexdigest()


def stated_md5(answer: HTTPResponse) -> str:
    """Return the MD5 that some servers state of the whole file, in hexadecimal.

    An ETag is never taken for one: many look like an MD5, and not all of them are.
    """
    headers = answer.headers
    # Of a file that is unpacked on its way here, it is that of the packed one.
    if headers.get("x-goog-stored-content-encoding", "identity") != "identity":
        return ""
    words = re.split(r"[,\s]+", ",".join(headers.get_all("x-goog-hash", [])))
    stated = [word.removeprefix("md5=") for word in words if word.startswith("md5=")]
    if answer.status == 200:  # else it may be that of a piece
        stated += headers.get_all("Content-MD5", [])
    try:
        raw = base64.b64decode(stated[0], validate=True) if stated else b""
    except ValueError:
        return ""
    return raw.hex() if len(raw) == 16 else ""

"""Compare a file with its published size and checksum, or with the server's."""

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

CHUNK_BYTES = 2**18

ReportProgress = Callable[[str, int, int | None], None]
"""Called with the current action, the bytes done, and the total bytes, if known."""


def find_mismatch(source: Source, path: Path, report: ReportProgress) -> str:
    """Compare a file with its published size and checksum.

    Returns:
        How it differs, in words; "" if it does not.
    """
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        return f"it has {size} bytes, not the published {source.size}"
    kind, _, published = source.checksum.partition(":")
    if published and (found := file_digest(kind, path, report)) != published:
        return f"its {kind} is {found}, not the published {published}"
    return ""


def file_digest(kind: str, path: Path, report: ReportProgress) -> str:
    """Return a file's checksum in hexadecimal."""
    summed = hashlib.new(kind, usedforsecurity=False)
    total, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            summed.update(chunk)
            done += len(chunk)
            report("checking", done, total)
    return summed.hexdigest()


def server_md5(response: HTTPResponse) -> str:
    """Return the MD5 of the whole file that some servers send, in hexadecimal, or "".

    ETags are not used: many look like an MD5, but not all of them are one.
    """
    headers = response.headers
    # If the server decompresses the file in transit, the MD5 is of the compressed one.
    if headers.get("x-goog-stored-content-encoding", "identity") != "identity":
        return ""
    entries = re.split(r"[,\s]+", ",".join(headers.get_all("x-goog-hash", [])))
    sent = [entry.removeprefix("md5=") for entry in entries if entry.startswith("md5=")]
    if response.status == 200:  # with 206 it may be of the range
        sent += headers.get_all("Content-MD5", [])
    try:
        raw = base64.b64decode(sent[0], validate=True) if sent else b""
    except ValueError:
        return ""
    return raw.hex() if len(raw) == 16 else ""

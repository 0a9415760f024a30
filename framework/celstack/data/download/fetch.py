"""Download a published file: resumable, checked, and moved to its place when complete.

Pooch is not used, because it does not resume broken transfers and follows redirects from https
to http.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from filelock import FileLock, Timeout

from celstack.data.download.checksums import (
    CHUNK_BYTES,
    ReportProgress,
    file_digest,
    find_mismatch,
)
from celstack.data.download.http import (
    RangeNotSatisfiableError,
    TransferError,
    open_url,
    read_chunk,
)
from celstack.data.download.remote_file import RemoteFile, read_remote, remote_path
from celstack.errors import CelstackError, RunFailedError
from celstack.text import describe_error

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Source

MAX_STALLED_TRIES = 4
"""Give up after this number of consecutive attempts that transfer nothing."""
FIRST_RETRY_SECONDS = 1.0
"""Delay before the second attempt; it doubles with each further one."""


def fetch(source: Source, target: Path, report: ReportProgress) -> str:
    """Download a file, resuming an earlier attempt if there is one.

    Args:
        source: The published file.
        target: Where to put it; it appears there only when it is complete and checked.
        report: Called with the progress.

    Returns:
        How the file was checked, in words.
    """
    part = target.with_name(target.name + ".part")
    lock = FileLock(part.with_name(part.name + ".lock"), timeout=0)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        part.open("ab").close()
    except Timeout:
        raise CelstackError(f"{target}: another command is downloading it") from None
    except OSError as error:
        lock.release()
        text = f"{target.parent}: cannot write there: {error.strerror}"
        raise CelstackError(text) from error
    try:
        with _report_write_errors(part):
            _transfer_with_retries(source, part, report)
            checked = _check(source, part, report)
            part.replace(target)
            remote_path(part).unlink(missing_ok=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Interrupted; {_describe_part(part)}") from None
    finally:
        with suppress(OSError):
            if not part.stat().st_size:
                _delete_part(part)
        # Before the release, after which another command may acquire it.
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()
    return checked


def _transfer_with_retries(source: Source, part: Path, report: ReportProgress) -> None:
    """Transfer until the file is complete; give up after too many stalled attempts."""
    furthest, tries = part.stat().st_size, 0
    while True:
        try:
            return _transfer(source, part, report)
        except TransferError as error:
            reached = part.stat().st_size
            tries = 1 if reached > furthest else tries + 1
            furthest = max(furthest, reached)
            if tries >= MAX_STALLED_TRIES:
                raise RunFailedError(
                    f"{source.url}: {error}; {_describe_part(part)}"
                ) from error
            report(f"{error}; retrying", reached, None)
            time.sleep(FIRST_RETRY_SECONDS * 2 ** (tries - 1))


def _transfer(source: Source, part: Path, report: ReportProgress) -> None:
    """Request the missing bytes and write them."""
    start, kept = part.stat().st_size, read_remote(source.url, part)
    # Without any of these, a changed file could not be distinguished from this one.
    known = kept and (kept.etag or kept.modified or source.checksum)
    if kept and known and start == kept.length:
        return
    headers = kept.range_headers(start) if kept and known and start else {}
    try:
        response = open_url(source.url, headers)
    except RangeNotSatisfiableError:
        _restart(part)
    with response:
        remote = RemoteFile.from_response(source.url, response)
        if response.status == 206:
            begins = response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            if not headers or not kept or not begins or not remote.matches(kept):
                _restart(part)
        else:
            # The whole file: it has changed, or the server does not support ranges.
            start = 0
            part.write_bytes(b"")
            remote.save(part)
        _check_length(source, remote, part, start)
        _write_chunks(response, remote.length or source.size, part, start, report)
    reached = part.stat().st_size
    if remote.length is not None and reached != remote.length:
        text = f"the transfer ended after {reached} of {remote.length} bytes"
        raise TransferError(text)


def _restart(part: Path) -> NoReturn:
    part.write_bytes(b"")
    raise TransferError("the file on the server has changed")


def _check_length(source: Source, remote: RemoteFile, part: Path, start: int) -> None:
    """Raise before the transfer if the size is wrong or the disk too small."""
    if remote.length is None:
        return
    if source.size not in (None, remote.length):
        _delete_part(part)
        text = f"it has {remote.length} bytes there, not the published {source.size}"
        raise RunFailedError(f"{source.url}: {text}; nothing was downloaded")
    free = shutil.disk_usage(part.parent).free
    if remote.length - start > free:
        text = f"{remote.length - start} bytes are missing, but only {free} are free"
        raise CelstackError(f"{part.parent}: not enough disk space: {text}")


def _write_chunks(
    response: HTTPResponse, total: int | None, part: Path, start: int, report: ReportProgress
) -> None:
    with part.open("r+b") as file:
        file.seek(start)
        done = start
        while chunk := read_chunk(response, CHUNK_BYTES):
            file.write(chunk)
            done += len(chunk)
            report("", done, total)
            if total is not None and done > total:
                break  # Too long: it cannot be the file, and might never end.
        file.flush()
        os.fsync(file.fileno())


def _check(source: Source, part: Path, report: ReportProgress) -> str:
    """Compare the file with the published checksum, or else with the server's."""
    mismatch = find_mismatch(source, part, report)
    remote = read_remote(source.url, part)
    md5 = remote.md5 if remote and not source.checksum else ""
    if not mismatch and md5 and (found := file_digest("md5", part, report)) != md5:
        mismatch = f"its md5 is {found}, not {md5} as the server states"
    if mismatch:
        _delete_part(part)
        raise RunFailedError(f"{source.url}: {mismatch}; the download was deleted")
    if source.checksum:
        return f"its {source.checksum.partition(':')[0]} is as published"
    if source.size:
        size = "its size is as published"
    elif remote and remote.length is not None:
        size = "its size is as the server states"
    else:
        size = "its size is unchecked"
    md5_note = ", its md5 as the server states" if md5 else ""
    return f"{size}{md5_note}; no checksum is published"


@contextmanager
def _report_write_errors(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or describe_error(error)
        text = f"cannot continue: {reason}; {_describe_part(part)}"
        raise RunFailedError(f"{part.parent}: {text}") from error


def _describe_part(part: Path) -> str:
    size = part.stat().st_size if part.exists() else 0
    if not size:
        return "nothing was downloaded"
    return f"{size} bytes saved in {part}; the same command resumes"


def _delete_part(part: Path) -> None:
    part.unlink(missing_ok=True)
    remote_path(part).unlink(missing_ok=True)

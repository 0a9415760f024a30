"""Fetch a published file: resumed where it broke off, checked, and only then in its place."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import attrs
from filelock import FileLock, Timeout

from celstack.data.download.checksums import CHUNK, Report, compare, digest, stated_md5
from celstack.data.download.http import BrokenOffError, OutOfRangeError, open_url, read_some
from celstack.errors import CelstackError, RunFailedError
from celstack.text import describe_error

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Source

TRIES = 4
"""How often in a row a transfer may get no further."""
PAUSE = 1.0
"""Seconds before the second try; twice as many before each that follows."""


@attrs.frozen
class Said:
    """What a server says of a file: kept beside the part, to know the file again."""

    url: str
    etag: str
    modified: str
    length: int | None
    md5: str

    def same(self, other: Said) -> bool:
        """Say whether both speak of the same bytes, as far as both say anything."""
        named = [(self.etag, other.etag), (self.modified, other.modified)]
        return self.length == other.length and all(a == b for a, b in named if a and b)


def fetch(source: Source, target: Path, report: Report) -> str:
    """Fetch a file to its place, and return in words how it was checked."""
    part = target.with_name(target.name + ".part")
    lock = FileLock(part.with_name(part.name + ".lock"), timeout=0)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        part.open("ab").close()
    except Timeout:
        raise CelstackError(f"{target}: another command is fetching it") from None
    except OSError as error:
        lock.release()
        text = f"{target.parent}: cannot write there: {error.strerror}"
        raise CelstackError(text) from error
    try:
        with _writing(part):
            _persist(source, part, report)
            checked = _check(source, part, report)
            part.replace(target)
            _notes(part).unlink(missing_ok=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_kept(part)}") from None
    finally:
        with suppress(OSError):
            if not part.stat().st_size:
                _forget(part)
        # Before it is released: another command may have it right after.
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()
    return checked


def _persist(source: Source, part: Path, report: Report) -> None:
    """Transfer until all is there; give up when tries get no further."""
    furthest, tries = part.stat().st_size, 0
    while True:
        try:
            return _transfer(source, part, report)
        except BrokenOffError as error:
            reached = part.stat().st_size
            tries = 1 if reached > furthest else tries + 1
            furthest = max(furthest, reached)
            if tries >= TRIES:
                raise RunFailedError(f"{source.url}: {error}; {_kept(part)}") from error
            report(f"{error}; trying again", reached, None)
            time.sleep(PAUSE * 2 ** (tries - 1))


def _transfer(source: Source, part: Path, report: Report) -> None:
    """Ask for what is missing, and write it."""
    start, kept = part.stat().st_size, _recall(source, part)
    # Without any of these, the rest of another file could not be told from that of this.
    known = kept and (kept.etag or kept.modified or source.checksum)
    if kept and known and start == kept.length:
        return
    headers = _range(kept, start) if kept and known and start else {}
    try:
        answer = open_url(source.url, headers)
    except OutOfRangeError:
        _begin_again(part)
    with answer:
        said = _said(source.url, answer)
        if answer.status == 206:
            begins = answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            if not headers or not kept or not begins or not said.same(kept):
                _begin_again(part)
        else:
            # The whole file: it has changed, or the server knows no pieces.
            start = 0
            part.write_bytes(b"")
            _notes(part).write_text(json.dumps(attrs.asdict(said)), encoding="utf-8")
        _check_announced(source, said, part, start)
        _write(answer, said.length or source.size, part, start, report)
    reached = part.stat().st_size
    if said.length is not None and reached != said.length:
        text = f"the transfer broke off after {reached} of {said.length} bytes"
        raise BrokenOffError(text)


def _range(kept: Said, start: int) -> dict[str, str]:
    """Ask for the rest, but of the same file only."""
    strong = "" if kept.etag.startswith("W/") else kept.etag
    condition = strong or kept.modified
    return {"Range": f"bytes={start}-"} | ({"If-Range": condition} if condition else {})


def _begin_again(part: Path) -> NoReturn:
    part.write_bytes(b"")
    raise BrokenOffError("the file on the server has changed")


def _said(url: str, answer: HTTPResponse) -> Said:
    headers = answer.headers
    ranged = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
    total = ranged[1] if ranged else headers.get("Content-Length", "")
    length = int(total) if total.isdecimal() else None
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    return Said(url, etag, modified, length, stated_md5(answer))


def _check_announced(source: Source, said: Said, part: Path, start: int) -> None:
    """Stop before anything is transferred that could not be kept."""
    if said.length is None:
        return
    if source.size not in (None, said.length):
        _forget(part)
        text = f"it has {said.length} bytes there, not the published {source.size}"
        raise RunFailedError(f"{source.url}: {text}; nothing was fetched")
    free = shutil.disk_usage(part.parent).free
    if said.length - start > free:
        text = f"{said.length - start} bytes are to come, but only {free} are free"
        raise CelstackError(f"{part.parent}: not enough room: {text}")


def _write(
    answer: HTTPResponse, most: int | None, part: Path, start: int, report: Report
) -> None:
    with part.open("r+b") as file:
        file.seek(start)
        done = start
        while chunk := read_some(answer, CHUNK):
            file.write(chunk)
            done += len(chunk)
            report("", done, most)
            if most is not None and done > most:
                break  # It cannot be right, and it might never end.
        file.flush()
        os.fsync(file.fileno())


def _check(source: Source, part: Path, report: Report) -> str:
    """Compare what came with what was published, or else with what the server says."""
    wrong = compare(source, part, report)
    said = _recall(source, part)
    stated = said.md5 if said and not source.checksum else ""
    if not wrong and stated and (found := digest("md5", part, report)) != stated:
        wrong = f"its md5 is {found}, not {stated} as the server says"
    if wrong:
        _forget(part)
        raise RunFailedError(f"{source.url}: {wrong}; what was fetched is deleted")
    if source.checksum:
        return f"its {source.checksum.partition(':')[0]} is as published"
    unknown = "the server says" if said and said.length is not None else "it came, unchecked"
    size = f"its size is as {'published' if source.size else unknown}"
    md5 = ", its md5 as the server says" if stated else ""
    return f"{size}{md5}; no checksum of it is published"


def _recall(source: Source, part: Path) -> Said | None:
    """Return what the server said of the part, if that can still be read."""
    try:
        said = Said(**json.loads(_notes(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return said if said.url == source.url else None


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        text = f"cannot go on: {error.strerror or describe_error(error)}; {_kept(part)}"
        raise RunFailedError(f"{part.parent}: {text}") from error


def _kept(part: Path) -> str:
    there = part.stat().st_size if part.exists() else 0
    if not there:
        return "nothing was fetched"
    return f"{there} bytes are in {part}; the same command goes on from there"


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _notes(part).unlink(missing_ok=True)


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")

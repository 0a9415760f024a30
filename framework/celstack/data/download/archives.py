"""Unpack an untrusted archive: no paths outside the folder, no links, no archive bombs."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from celstack.data.download.checksums import CHUNK_BYTES, ReportProgress
from celstack.errors import CelstackError
from celstack.text import describe_error

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_ARCHIVE_MEMBERS = 2_000_000
MAX_EXPANSION_RATIO = 200
"""How many times its own size an archive may unpack to; images hardly compress at all."""
BASE_UNPACKED_BYTES = 2**20
"""Added to the limit, so that small archives of well compressible files unpack."""


class _Member(NamedTuple):
    """A file or a folder inside an archive."""

    path: PurePosixPath
    size: int
    folder: bool
    raw: zipfile.ZipInfo | tarfile.TarInfo


def is_archive(file: str) -> bool:
    """Return whether a file of this name can be unpacked."""
    return file.lower().endswith(ARCHIVE_SUFFIXES)


def extract(archive: Path, into: Path, report: ReportProgress) -> list[Path]:
    """Unpack all of an archive into a folder, or nothing; return the new files and folders."""
    staging = into / f".{archive.name}-{os.getpid()}"
    try:
        with _report_damage(archive), _open_archive(archive) as opened:
            members = _check_members(archive, opened)
            tops = sorted({member.path.parts[0] for member in members})
            for top in tops:
                if os.path.lexists(into / top):
                    text = "exists already; nothing was unpacked"
                    raise CelstackError(f"{into / top}: {text}")
            total = sum(member.size for member in members)
            if total > (free := shutil.disk_usage(into).free):
                text = f"{archive} unpacks to {total} bytes, but only {free} are free"
                raise CelstackError(f"{into}: not enough disk space: {text}")
            _unpack(opened, members, staging, report)
        for top in tops:
            (staging / top).rename(into / top)
    except OSError as error:
        text = f"{into}: cannot unpack {archive.name} there: {error.strerror}"
        raise CelstackError(text) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [into / top for top in tops]


@contextmanager
def _report_damage(archive: Path) -> Iterator[None]:
    """Raise read errors as damage of the archive; errors of the system pass through."""
    try:
        yield
    except (CelstackError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        # Decompressors raise OSError without an errno for damaged data.
        raise CelstackError(f"{archive}: damaged ({describe_error(error)})") from error
    except Exception as error:
        raise CelstackError(f"{archive}: damaged ({describe_error(error)})") from error


@contextmanager
def _open_archive(archive: Path) -> Iterator[zipfile.ZipFile | tarfile.TarFile]:
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            yield packed
    else:
        with tarfile.open(archive) as tape:
            yield tape


def _check_members(archive: Path, opened: zipfile.ZipFile | tarfile.TarFile) -> list[_Member]:
    """Return the archive's members; raise if any of them must not be unpacked."""
    max_bytes = MAX_EXPANSION_RATIO * archive.stat().st_size + BASE_UNPACKED_BYTES
    members: dict[str, _Member] = {}
    total = 0
    for raw in opened.infolist() if isinstance(opened, zipfile.ZipFile) else opened:
        member = _member(archive, raw)
        total += member.size
        if total > max_bytes or len(members) > MAX_ARCHIVE_MEMBERS:
            text = f"more than {max_bytes} bytes or {MAX_ARCHIVE_MEMBERS} files"
            raise CelstackError(f"{archive}: would unpack to {text}; nothing was unpacked")
        # Some file systems ignore case.
        key = str(member.path).casefold()
        if not member.path.parts or (member.folder and key in members):
            continue
        if key in members:
            raise _refusal(archive, str(member.path), "occurs twice")
        members[key] = member
    return list(members.values())


def _member(archive: Path, raw: zipfile.ZipInfo | tarfile.TarInfo) -> _Member:
    if isinstance(raw, zipfile.ZipInfo):
        name, size, folder = raw.filename, raw.file_size, raw.is_dir()
        kind = stat.S_IFMT(raw.external_attr >> 16)
        plain = kind in (0, stat.S_IFDIR if folder else stat.S_IFREG)
        if raw.flag_bits & 1:
            raise _refusal(archive, name, "needs a password")
    else:
        name, size, folder = raw.name, raw.size, raw.isdir()
        plain = raw.isreg() or folder
    if not plain:
        raise _refusal(archive, name, "is a link or a device, not a file or folder")
    path = PurePosixPath(name)
    odd = any(letter in name for letter in "\\:\0")
    if path.is_absolute() or ".." in path.parts or odd:
        raise _refusal(archive, name, "would lie outside the folder")
    return _Member(path, 0 if folder else size, folder, raw)


def _refusal(archive: Path, name: str, text: str) -> CelstackError:
    return CelstackError(f"{archive}: {name!r} in it {text}; nothing was unpacked")


def _unpack(
    opened: zipfile.ZipFile | tarfile.TarFile,
    members: list[_Member],
    staging: Path,
    report: ReportProgress,
) -> None:
    staging.mkdir()
    total, done = sum(member.size for member in members), 0
    for member in members:
        path = staging / member.path
        if member.folder:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with _content(opened, member) as packed, path.open("xb") as file:
            while chunk := packed.read(CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                report("unpacking", done, total)


def _content(opened: zipfile.ZipFile | tarfile.TarFile, member: _Member) -> Any:
    """Open a file inside the archive."""
    if isinstance(opened, zipfile.ZipFile):
        assert isinstance(member.raw, zipfile.ZipInfo)
        return opened.open(member.raw)
    assert isinstance(member.raw, tarfile.TarInfo)
    content = opened.extractfile(member.raw)
    assert content is not None, "regular files can be opened"
    return content

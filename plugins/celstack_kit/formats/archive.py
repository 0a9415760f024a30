"""Read files of a folder, a zip or a tar archive by name, without extracting it."""

import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from celstack import CelstackError
from celstack_kit.formats.read_errors import blame_file

MAX_ARCHIVE_MEMBER_BYTES = 2**26
"""Larger members are refused; images in archives are far smaller."""


class Archive:
    """Read-only access to the files below a folder on disk or in an archive.

    Names are relative to the folder ``inside`` the archive or, if ``path`` is itself a
    folder, to that one. Links and other special members of an archive are ignored.
    """

    def __init__(self, path: Path, inside: str) -> None:
        self.path, self.inside = path, PurePosixPath(inside)
        self._zip: zipfile.ZipFile | None = None
        self._tar: tarfile.TarFile | None = None
        self._members: dict[str, tarfile.TarInfo] = {}
        try:
            with blame_file(path):
                self.names = self._list()
        except CelstackError:
            self.close()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the archive; its files can no longer be read."""
        for opened in (self._zip, self._tar):
            if opened is not None:
                opened.close()

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def describe(self, name: str) -> str:
        """Return the path of a file for messages, with the archive that holds it."""
        if self.path.is_dir():
            return str(self.path / name)
        return f"{self.path}: {self.inside / name}"

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        with blame_file(self.describe(name)):
            if self.names[name] > MAX_ARCHIVE_MEMBER_BYTES:
                raise CelstackError(
                    f"{self.describe(name)}: {self.names[name]} bytes, more than the limit of "
                    f"{MAX_ARCHIVE_MEMBER_BYTES}"
                )
            member = str(self.inside / name)
            if self._zip is not None:
                return self._zip.read(member)
            if self._tar is not None:
                opened = self._tar.extractfile(self._members[member])
                assert opened is not None, "regular files can be opened"
                return opened.read()
            return (self.path / name).read_bytes()

    def _list(self) -> dict[str, int]:
        """Return the size of each file by name."""
        if self.path.is_dir():
            files = (file for file in self.path.rglob("*") if file.is_file())
            return {f.relative_to(self.path).as_posix(): f.stat().st_size for f in files}
        if self.path.suffix == ".zip":
            self._zip = zipfile.ZipFile(self.path)
            return self._below({m.filename: m.file_size for m in self._zip.infolist()})
        self._tar = tarfile.open(self.path)  # noqa: SIM115 - see close
        self._members = {m.name: m for m in self._tar if m.isreg()}
        return self._below({name: member.size for name, member in self._members.items()})

    def _below(self, sizes: dict[str, int]) -> dict[str, int]:
        start = f"{self.inside}/"
        return {n.removeprefix(start): size for n, size in sizes.items() if n.startswith(start)}

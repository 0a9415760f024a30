"""What a server states about a file, kept beside a partial download to recognize the file."""

from __future__ import annotations

import json
import re
from http.client import HTTPResponse
from pathlib import Path

import attrs

from celstack.data.download.checksums import server_md5


@attrs.frozen
class RemoteFile:
    """A file on a server; what the server does not state is "" or None."""

    url: str
    etag: str
    modified: str
    length: int | None
    md5: str

    @staticmethod
    def from_response(url: str, response: HTTPResponse) -> RemoteFile:
        """Read the headers of a response, which may be a range of the file."""
        headers = response.headers
        ranged = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
        total = ranged[1] if ranged else headers.get("Content-Length", "")
        length = int(total) if total.isdecimal() else None
        etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
        return RemoteFile(url, etag, modified, length, server_md5(response))

    def matches(self, other: RemoteFile) -> bool:
        """Return whether both describe the same content, as far as both state anything."""
        validators = [(self.etag, other.etag), (self.modified, other.modified)]
        return self.length == other.length and all(a == b for a, b in validators if a and b)

    def range_headers(self, start: int) -> dict[str, str]:
        """Return headers that request the rest, on condition that the file is unchanged."""
        strong = "" if self.etag.startswith("W/") else self.etag
        condition = strong or self.modified
        return {"Range": f"bytes={start}-"} | ({"If-Range": condition} if condition else {})

    def save(self, part: Path) -> None:
        """Write this beside a partial download."""
        remote_path(part).write_text(json.dumps(attrs.asdict(self)), encoding="utf-8")


def read_remote(url: str, part: Path) -> RemoteFile | None:
    """Return what was saved beside a partial download of this address, if it is readable."""
    try:
        remote = RemoteFile(**json.loads(remote_path(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    known_length = remote.length is None or type(remote.length) is int
    headers = all(map(_is_header, (remote.etag, remote.modified, remote.md5)))
    return remote if remote.url == url and known_length and headers else None


def _is_header(value: object) -> bool:
    """Return whether a value can be sent as the header of a request."""
    return isinstance(value, str) and value.isprintable() and max(value, default="") <= "\xff"


def remote_path(part: Path) -> Path:
    """Return the file beside a partial download."""
    return part.with_name(part.name + ".json")

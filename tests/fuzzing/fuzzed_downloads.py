"""What lies beside a download that was not finished."""

import json

from mutations import Values, mutated_bytes, mutated_nest, mutated_text
from trial import Kind

from celstack.data.download.remote_file import RemoteFile, read_remote, remote_path
from celstack.errors import CelstackError

URL = "https://example.com/data.zip"
WORDS = [URL, '"1"', "W/x", "Wed, 21 Oct 2015 07:28:00 GMT", "\ud800"]


class Downloads(Kind):
    """It says how the rest is asked for, or is not believed."""

    def __init__(self, folder):
        super().__init__(folder)
        self.part = folder / "data.zip.part"
        self.known = {"url": URL, "etag": '"1"', "modified": "", "length": 10, "md5": ""}
        self.values = Values(WORDS, [*self.known])

    def attempt(self, random):
        remote_path(self.part).write_bytes(self.mutated(random))
        found = read_remote(URL, self.part)
        if found is None:
            raise CelstackError("not believed: the download starts again")
        headers = found.range_headers(random.choice((0, 5)))
        assert all(isinstance(text, str) for text in headers.values())
        assert all("\n" not in text and "\r" not in text for text in headers.values())
        "".join(headers.values()).encode("latin-1")
        found.matches(RemoteFile(**self.known))

    def mutated(self, random):
        choice, text = random.random(), json.dumps(self.known)
        if choice < 0.3:
            return mutated_bytes(random, text.encode())
        if choice < 0.6:
            return mutated_text(random, text, ['"', "{", "}", ",", "null", "1e999"]).encode()
        return json.dumps(mutated_nest(random, dict(self.known), self.values)).encode()

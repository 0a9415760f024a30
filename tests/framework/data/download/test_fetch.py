import base64
import errno
import hashlib
import json
import shutil
import sys
import tempfile
from http.client import HTTPMessage
from pathlib import Path
from urllib.request import Request

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celstack import Source
from celstack.data.download import fetch as download
from celstack.data.download.http import _SafeRedirects, open_url
from celstack.errors import CelstackError, RunFailedError

CONTENT = bytes(range(256)) * 4  # 1024 bytes, each told from its neighbours
OTHER = CONTENT[::-1]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(download, "FIRST_RETRY_SECONDS", 0.0)


@pytest.fixture
def put(server):
    """Publish a file and return its source."""

    def publish(content=CONTENT, size=None, checksum="", **behaviour):
        server.files["/x.bin"] = server.published(content, **behaviour)
        return Source(f"{server.url}/x.bin", "free", server.url, size, checksum)

    return publish


def md5(content=CONTENT):
    return f"md5:{hashlib.md5(content).hexdigest()}"


def get(source, folder, report=lambda *_: None):
    return download.fetch(source, folder / source.file, report)


def failure(source, folder, kind=RunFailedError):
    with pytest.raises(CelstackError) as failed:
        get(source, folder)
    assert type(failed.value) is kind
    (line,) = str(failed.value).splitlines()
    return line.removeprefix(f"{source.url}: ")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def pieces(server):
    return [asked.get("Range", "all") for asked in server.asked]


# All goes well.


def test_a_file_arrives_whole_and_nothing_else_is_left(put, tmp_path):
    get(put(), tmp_path / "new" / "folder")

    assert (tmp_path / "new" / "folder" / "x.bin").read_bytes() == CONTENT
    assert names(tmp_path / "new" / "folder") == ["x.bin"]


@pytest.mark.parametrize("checksum", [md5(), f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"])
def test_a_published_checksum_is_compared(put, tmp_path, checksum):
    said = get(put(checksum=checksum), tmp_path)

    assert said == f"its {checksum.split(':')[0]} is as published"


def test_where_nothing_is_published_the_servers_word_is_taken_and_that_is_said(put, tmp_path):
    missing = "no checksum is published"

    assert get(put(), tmp_path) == f"its size is as the server states; {missing}"
    assert get(put(size=1024), tmp_path) == f"its size is as published; {missing}"
    said = get(put(says_length=False), tmp_path)
    assert said == f"its size is unchecked; {missing}"


def test_progress_is_told_in_bytes(put, tmp_path):
    told = []

    get(put(checksum=md5()), tmp_path, lambda *heard: told.append(heard))

    assert told == [("", 1024, 1024), ("checking", 1024, 1024)]


def test_a_redirect_to_the_same_scheme_is_followed(put, server, tmp_path):
    put()
    server.files["/old"] = server.published(location="/x.bin")

    get(Source(f"{server.url}/old", "free", server.url), tmp_path)

    assert (tmp_path / "old").read_bytes() == CONTENT


# Transfers that break off.


def test_a_broken_transfer_goes_on_where_it_broke_off(put, server, tmp_path):
    source = put(cuts=[300, 200])

    get(source, tmp_path)

    assert pieces(server) == ["all", "bytes=300-", "bytes=500-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_tries_are_counted_anew_when_they_get_further(put, tmp_path):
    get(put(cuts=[100] * 9), tmp_path)

    assert (tmp_path / "x.bin").read_bytes() == CONTENT


DATE = "Mon, 16 Nov 2026 09:00:00 GMT"


@pytest.mark.parametrize(
    ("etag", "modified", "condition"),
    [('"1"', DATE, '"1"'), ('W/"1"', DATE, DATE), ("", DATE, DATE), ('W/"1"', "", None)],
)
def test_the_rest_is_asked_for_of_the_same_file_only(
    put, server, tmp_path, etag, modified, condition
):
    get(put(cuts=[300], etag=etag, modified=modified), tmp_path)

    assert server.asked[1].get("If-Range") == condition
    assert pieces(server) == ["all", "bytes=300-"]


def test_the_part_of_another_address_is_not_gone_on_with(put, server, tmp_path):
    failure(put(cuts=[300, 0, 0, 0]), tmp_path)
    server.files["/y.bin"] = server.published(OTHER)
    server.asked.clear()

    get(Source(f"{server.url}/y.bin", "free", server.url, file="x.bin"), tmp_path)

    assert pieces(server) == ["all"]
    assert (tmp_path / "x.bin").read_bytes() == OTHER


def test_the_next_command_goes_on_too(put, server, tmp_path):
    source = put(cuts=[300, 0, 0, 0])

    line = failure(source, tmp_path)

    part = tmp_path / "x.bin.part"
    kept = f"300 bytes saved in {part}; the same command resumes"
    assert line == f"the transfer ended after 300 of 1024 bytes; {kept}"
    assert names(tmp_path) == ["x.bin.part", "x.bin.part.json"]
    server.asked.clear()
    get(source, tmp_path)
    assert pieces(server) == ["bytes=300-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["x.bin"]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    cuts=st.lists(st.integers(1, 400), max_size=6),
    knows_ranges=st.booleans(),
    etag=st.sampled_from(['"1"', 'W/"1"', ""]),
    modified=st.sampled_from([DATE, ""]),
)
def test_wherever_it_breaks_off_the_right_bytes_arrive(
    put, monkeypatch, cuts, knows_ranges, etag, modified
):
    monkeypatch.setattr(download, "MAX_STALLED_TRIES", 9)
    source = put(cuts=cuts, knows_ranges=knows_ranges, etag=etag, modified=modified)

    with tempfile.TemporaryDirectory() as folder:
        get(source, Path(folder))

        assert (Path(folder) / "x.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_again(put, server, tmp_path):
    get(put(cuts=[300], knows_ranges=False), tmp_path)

    assert pieces(server) == ["all", "bytes=300-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("keeps_condition", [True, False])
def test_a_file_that_has_changed_is_fetched_anew(put, server, tmp_path, keeps_condition):
    failure(put(cuts=[300, 0, 0, 0]), tmp_path)

    get(put(OTHER, etag='"2"', keeps_condition=keeps_condition), tmp_path)

    assert server.asked[-1].get("If-Range", '"1"') == '"1"'
    assert (tmp_path / "x.bin").read_bytes() == OTHER


def test_a_file_that_has_become_shorter_is_fetched_anew(put, tmp_path):
    failure(put(cuts=[300, 0, 0, 0]), tmp_path)

    get(put(CONTENT[:200], keeps_condition=False), tmp_path)

    assert (tmp_path / "x.bin").read_bytes() == CONTENT[:200]


def test_what_could_be_another_file_is_not_gone_on_with(put, server, tmp_path):
    failure(put(cuts=[300, 0, 0, 0], etag=""), tmp_path)
    server.asked.clear()

    get(put(OTHER, etag=""), tmp_path)

    assert pieces(server) == ["all"]
    assert (tmp_path / "x.bin").read_bytes() == OTHER


def test_a_published_checksum_is_enough_to_go_on(put, server, tmp_path):
    get(put(cuts=[300], etag="", checksum=md5()), tmp_path)

    assert pieces(server) == ["all", "bytes=300-"]


@pytest.mark.parametrize("notes", ["", "{", "[]", "{}", '{"url": 1}'])
def test_damaged_notes_are_as_good_as_none(put, server, tmp_path, notes):
    source = put()
    (tmp_path / "x.bin.part").write_bytes(b"rubbish")
    (tmp_path / "x.bin.part.json").write_text(notes)

    get(source, tmp_path)

    assert pieces(server) == ["all"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "odd", [{"etag": True}, {"etag": "\ud800"}, {"modified": "a\nb"}, {"length": "7"}]
)
def test_notes_that_no_server_sent_are_as_good_as_none(put, server, tmp_path, odd):
    source = put()
    notes = {"url": source.url, "etag": '"1"', "modified": "", "length": 9, "md5": ""} | odd
    (tmp_path / "x.bin.part").write_bytes(b"rubbish")
    (tmp_path / "x.bin.part.json").write_text(json.dumps(notes))

    get(source, tmp_path)

    assert pieces(server) == ["all"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_a_part_that_was_complete_is_only_checked(put, server, tmp_path):
    source = put(cuts=[1023, 0, 0, 0])
    failure(source, tmp_path)
    with (tmp_path / "x.bin.part").open("ab") as file:
        file.write(CONTENT[-1:])
    server.asked.clear()

    get(source, tmp_path)

    assert server.asked == []
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_ctrl_c_keeps_what_was_fetched(put, server, tmp_path):
    source = put(cuts=[300])

    def interrupt(doing, done, total):
        raise KeyboardInterrupt

    with pytest.raises(
        KeyboardInterrupt, match=r"^Interrupted; 300 bytes saved in .*x\.bin\.part"
    ):
        get(source, tmp_path, interrupt)

    get(source, tmp_path)
    assert pieces(server) == ["all", "bytes=300-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


# What arrives is wrong.


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(put, tmp_path):
    line = failure(put(checksum=md5(OTHER)), tmp_path)

    found, published = md5()[4:], md5(OTHER)[4:]
    wrong = f"its md5 is {found}, not the published {published}"
    assert line == f"{wrong}; the download was deleted"
    assert names(tmp_path) == []


def test_a_wrong_size_is_seen_before_anything_is_transferred(put, tmp_path):
    line = failure(put(size=1000), tmp_path)

    assert line == "it has 1024 bytes there, not the published 1000; nothing was downloaded"
    assert names(tmp_path) == []


@pytest.mark.parametrize("size", [1000, 2000])
def test_a_wrong_size_is_seen_where_the_server_says_none(put, tmp_path, size):
    line = failure(put(size=size, says_length=False), tmp_path)

    wrong = f"it has 1024 bytes, not the published {size}"
    assert line == f"{wrong}; the download was deleted"
    assert names(tmp_path) == []


def stated(content, **more):
    digest = base64.b64encode(hashlib.md5(content).digest()).decode()
    return {"x-goog-hash": f"crc32c=AAAAAA==,md5={digest}", **more}


def test_an_md5_that_the_server_states_is_compared(put, tmp_path):
    said = get(put(headers=stated(CONTENT)), tmp_path)
    size = "its size is as the server states"
    assert said == f"{size}, its md5 as the server states; no checksum is published"

    line = failure(put(headers=stated(OTHER)), tmp_path)
    assert line.endswith("as the server states; the download was deleted")
    digest = stated(OTHER)["x-goog-hash"].partition("md5=")[2]
    line = failure(put(headers={"Content-MD5": digest}), tmp_path)
    assert line.endswith("as the server states; the download was deleted")


@pytest.mark.parametrize(
    "headers",
    [
        stated(OTHER, **{"x-goog-stored-content-encoding": "gzip"}),
        {"Content-MD5": "not base64!"},
        {"Content-MD5": "c2hvcnQ="},
    ],
)
def test_an_md5_that_is_none_of_the_file_is_not_compared(put, tmp_path, headers):
    assert "md5" not in get(put(headers=headers), tmp_path)


# The server fails.


def test_a_file_that_is_not_there_is_not_asked_for_twice(put, server, tmp_path):
    source = put()
    server.files.clear()

    assert failure(source, tmp_path) == "the server responded 404 Not Found"
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_server_that_is_busy_is_asked_again(put, server, tmp_path):
    get(put(statuses=[503, 429]), tmp_path)
    assert len(server.asked) == 3

    line = failure(put(statuses=[503] * 4), tmp_path)
    assert line == "the server responded 503 Service Unavailable; nothing was downloaded"


def test_a_server_that_is_not_there_is_said(put, server, tmp_path):
    server.shutdown()
    server.server_close()

    assert failure(put(), tmp_path).startswith("no connection (ConnectionRefusedError")


def test_a_circle_of_redirects_is_said(put, tmp_path):
    line = failure(put(location="/x.bin"), tmp_path)

    assert line == "redirect loop"


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/x", "file:///etc/passwd", "data:,x"])
def test_a_redirect_out_of_the_web_is_refused(put, tmp_path, location):
    line = failure(put(location=location), tmp_path)

    only = "only redirects to https, or from http to http, are followed"
    assert line == f"refused redirect to {location}: {only}"


@pytest.mark.parametrize(
    ("here", "there", "followed"),
    [
        ("https", "http", False),
        ("https", "https", True),
        ("http", "https", True),
        ("http", "http", True),
    ],
)
def test_no_redirect_leads_from_https_to_http(here, there, followed):
    asked = Request(f"{here}://a.org/x")

    told = _SafeRedirects().redirect_request(
        asked, None, 302, "", HTTPMessage(), f"{there}://b.org"
    )

    assert (told is not None) == followed


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.org/x", "data:,x", "x.bin"])
def test_no_other_scheme_is_opened_or_declared(url):
    with pytest.raises(RunFailedError, match="only http and https are supported"):
        open_url(url, {})
    with pytest.raises(ValueError, match="is not an http:// or https:// address"):
        Source(url, "free", "https://a.org")


def test_an_address_that_cannot_be_asked_for_is_said():
    with pytest.raises(RunFailedError, match="not a valid address"):
        open_url("http://127.0.0.1/\u2606", {})


# This machine fails.


def test_a_folder_that_cannot_be_written_is_a_mistake(put, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    line = failure(put(), tmp_path / "file", CelstackError)
    assert line.startswith(f"{tmp_path / 'file'}: cannot write there: ")

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    line = failure(put(), tmp_path, CelstackError)
    assert line == f"{tmp_path}: cannot write there: Read-only file system"


def test_too_little_room_is_seen_before_anything_is_transferred(put, tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))(2000, 1977, 23)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    line = failure(put(), tmp_path, CelstackError)

    room = "1024 bytes are missing, but only 23 are free"
    assert line == f"{tmp_path}: not enough disk space: {room}"
    assert names(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files cannot be kept small there")
def test_a_disk_that_fills_keeps_what_was_written(put, server, tmp_path):
    import resource

    source = put(CONTENT * 4000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
    try:
        line = failure(source, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    kept = f"3000000 bytes saved in {tmp_path / 'x.bin.part'}; the same command resumes"
    assert line == f"{tmp_path}: cannot continue: File too large; {kept}"
    get(source, tmp_path)
    assert pieces(server) == ["all", "bytes=3000000-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT * 4000


def test_two_commands_do_not_write_one_file(put, tmp_path):
    with FileLock(tmp_path / "x.bin.part.lock"):
        line = failure(put(), tmp_path, CelstackError)

    assert line == f"{tmp_path / 'x.bin'}: another command is downloading it"


def test_a_lock_is_gone_before_it_is_released(put, tmp_path, monkeypatch):
    there = []
    release = FileLock.release

    def watched(lock, force=False):
        if Path(lock.lock_file).parent == tmp_path:  # not those that others have forgotten
            there.append(Path(lock.lock_file).exists())
        release(lock, force)

    monkeypatch.setattr(FileLock, "release", watched)

    download.fetch(put(), tmp_path / "x.bin", lambda *_: None)

    # Else it might be taken away from the next command, and a third could have one as well.
    assert there
    assert not any(there)


# What a source declares.


def test_a_file_is_called_as_in_its_address_unless_it_says_otherwise():
    url = "https://a.org/data/x.bin?version=2"

    assert Source(url, "free", "https://a.org").file == "x.bin"
    assert Source(url, "free", "https://a.org", file="x/y.bin").file == "x/y.bin"


@pytest.mark.parametrize(
    "wrong",
    [
        {"file": "../x"},
        {"file": "/x"},
        {"file": "a/../../x"},
        {"file": "C:x"},
        {"file": "..\\x"},
        {"file": ""},
        {"size": 0},
        {"checksum": "md5:12"},
        {"checksum": "crc32:12345678"},
    ],
)
def test_a_source_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError):
        Source("https://a.org/x", "free", "https://a.org", **wrong)

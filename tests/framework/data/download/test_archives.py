import io
import os
import shutil
import stat
import tarfile
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celstack.data.download import archives as module
from celstack.data.download.archives import extract, is_archive
from celstack.errors import CelstackError

KINDS = {"x.zip": "", "x.tar": "w", "x.tar.gz": "w:gz", "x.tgz": "w:gz", "x.tar.xz": "w:xz"}


def pack(path, files):
    """Write an archive of these names and contents; None makes a folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files:
                packed.writestr(name + "/" * (content is None), content or b"")
        return path
    with tarfile.open(path, KINDS[path.name]) as tape:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.size = len(content or b"")
            tape.addfile(member, io.BytesIO(content or b""))
    return path


def special(path, kind):
    """Write an archive with one member that is no file, and that leads outside."""
    if path.suffix == ".zip":
        member = zipfile.ZipInfo("a/link")
        member.create_system = 3
        member.external_attr = (kind | 0o777) << 16
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(member, "../../outside")
        return path
    member = tarfile.TarInfo("a/link")
    member.type, member.linkname = kind, "../../outside"
    with tarfile.open(path, "w") as tape:
        tape.addfile(member)
    return path


def unpack(archive, into):
    into.mkdir(exist_ok=True)
    return extract(archive, into, lambda *_: None)


def refusal(archive, into):
    with pytest.raises(CelstackError) as refused:
        unpack(archive, into)
    (line,) = str(refused.value).splitlines()
    assert list(into.iterdir()) == []
    return line


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def everything(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", KINDS)
def test_files_and_folders_are_unpacked(tmp_path, name):
    archive = pack(tmp_path / name, [("a", None), ("a/b/c.txt", b"c"), ("d.txt", b"d")])

    new = unpack(archive, tmp_path / "to")

    assert new == [tmp_path / "to" / "a", tmp_path / "to" / "d.txt"]
    assert everything(tmp_path / "to") == {"a/b/c.txt": b"c", "d.txt": b"d"}
    assert names(tmp_path / "to") == ["a", "d.txt"]


def test_progress_is_told_in_bytes_of_the_files(tmp_path):
    told = []
    archive = pack(tmp_path / "x.zip", [("a", b"12"), ("b", b"345")])
    (tmp_path / "to").mkdir()

    extract(archive, tmp_path / "to", lambda *heard: told.append(heard))

    assert told == [("unpacking", 2, 5), ("unpacking", 5, 5)]


def test_archives_are_known_by_their_names():
    known = ["x.zip", "x.ZIP", *KINDS, "x.tar.bz2"]

    assert all(map(is_archive, known))
    assert not any(map(is_archive, ["x.mat", "x.tfrecords", "x.gz", "zip"]))


# Hostile archives.


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
@pytest.mark.parametrize(
    "inside", ["../evil", "a/../../evil", "/evil", "a\\..\\..\\evil", "C:/evil", "C:evil"]
)
def test_no_file_lies_outside(tmp_path, name, inside):
    archive = pack(tmp_path / name, [("good", b""), (inside, b"evil")])

    line = refusal(archive, tmp_path / "to")

    outside = "in it would lie outside the folder; nothing was unpacked"
    assert line == f"{archive}: {inside!r} {outside}"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.zip", stat.S_IFLNK),
        ("x.zip", stat.S_IFCHR),
        ("x.zip", stat.S_IFIFO),
        ("x.tar", tarfile.SYMTYPE),
        ("x.tar", tarfile.LNKTYPE),
        ("x.tar", tarfile.CHRTYPE),
        ("x.tar", tarfile.BLKTYPE),
        ("x.tar", tarfile.FIFOTYPE),
    ],
)
def test_links_and_devices_are_refused(tmp_path, name, kind):
    line = refusal(special(tmp_path / name, kind), tmp_path / "to")

    assert "'a/link' in it is a link or a device, not a file or folder" in line


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar.xz"])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path, name, monkeypatch):
    monkeypatch.setattr(module, "BASE_UNPACKED_BYTES", 1000)
    archive = pack(tmp_path / name, [("zeros", b"\0" * 10_000_000)])
    monkeypatch.setattr(module, "_unpack", None)

    line = refusal(archive, tmp_path / "to")

    most = 200 * archive.stat().st_size + 1000
    assert line.startswith(f"{archive}: would unpack to more than {most} bytes")


def test_a_bomb_of_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ARCHIVE_MEMBERS", 10)
    archive = pack(tmp_path / "x.tar", [(str(number), b"") for number in range(20)])

    assert "or 10 files" in refusal(archive, tmp_path / "to")


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("b/a", "B/A")])
def test_no_file_takes_the_place_of_another(tmp_path, names):
    archive = pack(tmp_path / "x.tar", [(name, b"x") for name in names])

    assert "occurs twice" in refusal(archive, tmp_path / "to")


def test_a_password_is_asked_for_by_none(tmp_path):
    archive = pack(tmp_path / "x.zip", [("a", b"abc")])
    raw = bytearray(archive.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(raw)

    assert "'a' in it needs a password" in refusal(archive, tmp_path / "to")


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_archive_is_named_and_nothing_is_left(tmp_path, name):
    archive = pack(tmp_path / name, [(file, os.urandom(5000)) for file in "ab"])
    archive.write_bytes(archive.read_bytes()[:7000])

    assert refusal(archive, tmp_path / "to").startswith(f"{archive}: damaged (")


@given(content=st.binary(max_size=300))
def test_no_bytes_bring_more_than_a_refusal(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("any")
    for name in ("x.zip", "x.tar"):
        (folder / name).write_bytes(content)
        with suppress(CelstackError):
            unpack(folder / name, folder / "to")
        assert everything(folder / "to") == {}


# What exists already.


def test_nothing_that_is_there_is_touched(tmp_path):
    archive = pack(tmp_path / "x.zip", [("new", b"new"), ("old/file", b"new")])
    (tmp_path / "to" / "old").mkdir(parents=True)

    with pytest.raises(CelstackError) as refused:
        unpack(archive, tmp_path / "to")

    there = f"{tmp_path / 'to' / 'old'}: exists already; nothing was unpacked"
    assert str(refused.value) == there
    assert names(tmp_path / "to") == ["old"]


def test_a_link_to_nowhere_is_there_already(tmp_path):
    archive = pack(tmp_path / "x.zip", [("old", b"new")])
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "old").symlink_to(tmp_path / "nowhere")

    with pytest.raises(CelstackError, match="exists already"):
        unpack(archive, tmp_path / "to")

    assert (tmp_path / "to" / "old").is_symlink()


def test_a_disk_without_room_is_seen_before_anything_is_written(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))(9, 6, 3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    archive = pack(tmp_path / "x.zip", [("a", b"1234")])

    line = refusal(archive, tmp_path / "to")

    room = f"{archive} unpacks to 4 bytes, but only 3 are free"
    assert line == f"{tmp_path / 'to'}: not enough disk space: {room}"


def test_a_disk_that_fills_leaves_nothing_behind(tmp_path, monkeypatch):
    archive = pack(tmp_path / "x.zip", [("a", b"1234"), ("b", b"5678")])

    def report(doing, done, total):
        if done > 4:
            raise OSError(28, "No space left on device")

    (tmp_path / "to").mkdir()
    with pytest.raises(CelstackError, match=r"cannot unpack x\.zip there: No space left"):
        extract(archive, tmp_path / "to", report)

    assert names(tmp_path / "to") == []

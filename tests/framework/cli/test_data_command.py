import hashlib
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from celstack.registry import catalog as catalog_module

CONTENT = b"0123456789"
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
DATASET = """
from celstack import Dataset, Source, hookimpl

class Stars(Dataset):
    image_shape = (3, 8, 8)
    {attributes}

    def count(self, split):
        return 1

    def read(self, split, indices):
        raise NotImplementedError

@hookimpl
def celstack_datasets():
    return {{"stars": Stars}}
"""


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Have no data but what a test puts here, and no cache but this."""
    monkeypatch.setenv("CELSTACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def install(monkeypatch, plugin):
    """Install datasets, and nothing else."""

    def install_all(attributes, *others):
        stars = plugin("dataset-stars", DATASET.format(attributes=attributes))
        entries = [stars, *others]
        monkeypatch.setattr(catalog_module, "entry_points", lambda group: entries)

    return install_all


@pytest.fixture
def stars(server, install):
    """A dataset of one file on a server, as its owners would declare it."""

    def publish(content=CONTENT, file="stars.bin", checksum=MD5, more="", **behaviour):
        server.files[f"/{file}"] = server.published(content, **behaviour)
        url = f"{server.url}/{file}"
        source = f"Source({url!r}, 'for stargazers', 'https://stars.org', None, {checksum!r}"
        install(f"sources = ({source}, 'Galilei, 1610'),); {more}")
        return url

    return publish


def one_clear_line(answer, code):
    assert answer.code == code
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ")


# Getting.


def test_licence_and_source_are_said_first(command, stars, home):
    url = stars()

    answer = command("celstack", "data", "get", "stars")

    target = home / "data" / "stars.bin"
    assert answer.said.splitlines() == [
        "stars: from https://stars.org",
        "license: for stargazers",
        "please cite: Galilei, 1610",
        f"stars.bin: size unknown from {url}",
        f"stars.bin: downloaded to {target}; its md5 is as published",
    ]
    assert (answer.code, answer.complaint) == (0, "")
    assert target.read_bytes() == CONTENT


def test_where_no_folder_is_named_it_goes_to_the_cache(command, stars, home, monkeypatch):
    stars()
    monkeypatch.delenv("CELSTACK_DATA")

    command("celstack", "data", "get", "stars")

    assert (home / "cache" / "celstack" / "stars.bin").read_bytes() == CONTENT


def test_a_folder_may_be_chosen(command, stars, home):
    stars()

    command("celstack", "data", "get", "stars", "--to", str(home / "mine"))

    assert (home / "mine" / "stars.bin").read_bytes() == CONTENT
    assert not (home / "data").exists()


def test_what_is_there_and_sound_is_not_fetched_again(command, stars, server, home):
    stars()
    (home / "cache" / "celstack").mkdir(parents=True)
    (home / "cache" / "celstack" / "stars.bin").write_bytes(CONTENT)

    answer = command("celstack", "data", "get", "stars")

    place = home / "cache" / "celstack" / "stars.bin"
    assert answer.code == 0
    assert answer.said.splitlines()[-1] == f"stars.bin: already in {place}; as published"
    assert server.asked == []


def test_what_is_there_and_different_is_not_touched(command, stars, server, home):
    stars()
    (home / "data").mkdir()
    (home / "data" / "stars.bin").write_bytes(b"mine")

    line = one_clear_line(command("celstack", "data", "get", "stars"), 2)

    assert line.startswith(f"{home / 'data' / 'stars.bin'}: exists, but its md5 is ")
    assert "move it away to download it again" in line
    assert (home / "data" / "stars.bin").read_bytes() == b"mine"
    assert server.asked == []


def test_a_failed_transfer_ends_with_1(command, stars, server):
    url = stars()
    server.files.clear()

    line = one_clear_line(command("celstack", "data", "get", "stars"), 1)

    assert line == f"{url}: the server responded 404 Not Found"


def test_a_folder_that_cannot_be_written_ends_with_2(command, stars, home):
    stars()
    (home / "file").touch()

    line = one_clear_line(
        command("celstack", "data", "get", "stars", "--to", str(home / "file")), 2
    )

    assert line.startswith(f"{home / 'file'}: cannot write there: ")


def test_plain_lines_tell_the_progress_of_large_files(command, stars):
    stars(b"x" * 11_000_000, checksum="")

    lines = command("celstack", "data", "get", "stars").complaint.splitlines()

    assert lines[-1] == "stars.bin: 11000000 of 11000000 bytes"
    assert len(lines) == 10


def test_only_some_files_may_be_fetched(command, install, server, home):
    sources = [f"Source('{server.url}/{name}', 'free', 'https://a.org')" for name in "ab"]
    server.files.update({f"/{name}": server.published(name.encode()) for name in "ab"})
    install(f"sources = ({', '.join(sources)})")

    answer = command("celstack", "data", "get", "stars", "--file", "b")

    assert answer.code == 0
    assert [path.name for path in (home / "data").iterdir()] == ["b"]
    line = one_clear_line(command("celstack", "data", "get", "stars", "--file", "c"), 2)
    assert line == "--file: 'stars' has no file 'c' to download (known: a, b)"


@pytest.mark.parametrize(
    ("attributes", "advice"),
    [
        ("elsewhere = 'ask Galilei'", "ask Galilei"),
        ("generated = True", "'stars' generates its images"),
        ("pass", "see 'celstack show dataset stars'"),
    ],
)
def test_what_cannot_be_fetched_is_said(command, install, attributes, advice):
    install(attributes)

    line = one_clear_line(command("celstack", "data", "get", "stars"), 2)

    assert line == f"'stars' has no files to download; {advice}"


def test_a_dataset_that_nobody_has_is_said(command, install):
    install("pass")

    line = one_clear_line(command("celstack", "data", "get", "star"), 2)

    assert line == "no dataset is called 'star'; did you mean 'stars'? (known: stars)"


# Unpacking.


def archive(path, name):
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(name, "sky")
    return path.read_bytes()


def test_archives_are_unpacked_where_that_is_asked_for(command, stars, home):
    stars(archive(home / "x.zip", "sky/a.txt"), "stars.zip", "")

    assert command("celstack", "data", "get", "stars").code == 0
    assert [path.name for path in (home / "data").iterdir()] == ["stars.zip"]
    answer = command("celstack", "data", "get", "stars", "--extract")

    unpacked = f"stars.zip: unpacked to {home / 'data' / 'sky'}"
    assert answer.said.splitlines()[-1] == unpacked
    assert (home / "data" / "sky" / "a.txt").read_text() == "sky"


def test_a_hostile_archive_is_not_unpacked(command, stars, home):
    stars(archive(home / "x.zip", "../../evil"), "stars.zip", "")

    line = one_clear_line(command("celstack", "data", "get", "stars", "--extract"), 2)

    assert "'../../evil' in it would lie outside the folder; nothing was unpacked" in line
    assert not list(home.rglob("evil"))


def test_where_there_is_no_archive_none_can_be_unpacked(command, stars, server):
    stars()

    line = one_clear_line(command("celstack", "data", "get", "stars", "--extract"), 2)

    assert line == "--extract: none of the files of stars is an archive"
    assert server.asked == []


# Listing.


def test_what_is_there_can_be_fetched_or_is_generated_is_listed(command, stars, home):
    stars(more="files = ('sky', 'dust'); generated = True")
    (home / "data" / "sky").mkdir(parents=True)
    (home / "cache" / "celstack").mkdir(parents=True)
    (home / "cache" / "celstack" / "dust").write_bytes(b"123")

    answer = command("celstack", "data", "list")

    data, cache = home / "data", home / "cache" / "celstack"
    assert answer.code == 0
    assert answer.said.splitlines() == [
        "stars (acme 1.0)",
        f"  there     {data / 'sky'}, a folder",
        f"  there     {cache / 'dust'}, 3 bytes",
        "  to get    stars.bin, size unknown; license: for stargazers; celstack data get stars",
        "  generated generates its images and needs no files",
        f"searched in {data}, {cache}",
    ]


def test_where_to_get_what_is_missing_is_listed_until_it_is_there(command, install, home):
    install("files = ('sky',); elsewhere = 'ask Galilei'")
    assert "  missing   ask Galilei" in command("celstack", "data", "list").said

    (home / "data" / "sky").mkdir(parents=True)
    assert "ask Galilei" not in command("celstack", "data", "list").said


def test_broken_datasets_cost_only_themselves(command, install, plugin, entry_point):
    source = DATASET.format(attributes="sources = ('https://a.org/x',)").replace("stars", "odd")
    ftp = "sources = (Source('ftp://a.org/x', 'free', 'https://a.org'),)"
    install(
        "generated = True",
        plugin("dataset-bad", "import no"),
        plugin("dataset-odd", source),
        plugin("dataset-old", DATASET.format(attributes=ftp).replace("stars", "old")),
        entry_point("dataset-stars", "other", package="zeta"),
    )

    answer = command("celstack", "data", "list")

    assert answer.code == 0
    said = answer.said
    assert "bad (acme 1.0)\n  broken    ModuleNotFoundError: No module named 'no'\n" in said
    assert "odd (acme 1.0)\n  broken    AttributeError: " in said
    assert "old (acme 1.0)\n  broken    ValueError: 'ftp://a.org/x' is not an http://" in said
    assert "  refused   the name is claimed by acme 1.0 too\n" in said


def test_the_installed_datasets_are_sound(command, home):
    answer = command("celstack", "data", "list")

    assert answer.code == 0
    assert "broken" not in answer.said
    assert f"searched in {home / 'data'}, " in answer.said


# Ctrl-C, in earnest.

CODE = """
import sys
from importlib.metadata import EntryPoint
from celstack import cli
from celstack.registry import catalog
catalog.entry_points = lambda group: [EntryPoint("dataset-stars", "stars", group)]
cli.celstack()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent there")
def test_ctrl_c_keeps_the_part_and_the_next_command_goes_on(server, home):
    content = bytes(1_000_000)
    stuck = server.published(content)
    server.files["/stars.bin"] = stuck
    source = f"Source('{server.url}/stars.bin', 'free', 'https://a.org')"
    (home / "stars.py").write_text(DATASET.format(attributes=f"sources = ({source},)"))
    command = [sys.executable, "-c", CODE, "data", "get", "stars"]
    part = home / "data" / "stars.bin.part"
    # The server sends half, and then waits for longer than anybody would.
    server.files["/stars.bin"] = server.published(content, stalls=600_000)

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home
    )
    try:
        end = time.monotonic() + 120
        while not (part.exists() and part.stat().st_size > 200_000):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    finally:
        process.kill()
        server.go_on.set()

    kept = part.stat().st_size
    assert process.returncode == 130
    on = "the same command resumes"
    assert complaint == f"celstack: Interrupted; {kept} bytes saved in {part}; {on}\n"
    server.files["/stars.bin"] = stuck
    subprocess.run(command, check=True, cwd=home, capture_output=True, timeout=120)
    assert server.asked[-1]["Range"] == f"bytes={kept}-"
    assert (home / "data" / "stars.bin").read_bytes() == content

import os
import sys
from pathlib import Path

import pytest

from celstack import Dataset, Source
from celstack.data.paths import cache_dir, data_dirs, find_file, require_file
from celstack.errors import CelstackError


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("CELSTACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_the_folder_of_the_environment_comes_before_the_cache(home):
    in_cache = put(home / "cache/celstack/x.mat")
    assert require_file("x", None, ["x.mat"]) == in_cache

    in_data = put(home / "data/x.mat")
    assert require_file("x", None, ["x.mat"]) == in_data


def test_where_a_root_is_named_nothing_else_is_looked_at(home):
    put(home / "data/x.mat")

    assert find_file(home / "mine", ["x.mat"]) is None
    assert data_dirs(Path("~/mine")) == [Path("~/mine").expanduser()]


def test_of_several_names_the_first_counts(home):
    put(home / "data/unpacked/x")
    packed = put(home / "data/x.zip")

    assert require_file("x", None, ["x.zip", "unpacked"]) == packed


def test_what_is_missing_is_said_with_all_places_tried(home):
    with pytest.raises(CelstackError) as missing:
        require_file("signs", None, ["x.zip", "unpacked"])

    tried = f"no x.zip or unpacked in {home / 'data'}, {home / 'cache' / 'celstack'}"
    help_ = "set root or CELSTACK_DATA to the folder that holds it"
    assert str(missing.value) == f"signs: {tried}; {help_}"


def test_the_error_says_how_to_come_by_what_is_missing(home):
    with pytest.raises(CelstackError) as missing:
        require_file("signs", home / "mine", ["x.zip"], "'celstack data get signs' fetches it")

    help_ = "'celstack data get signs' fetches it; root names the folder that holds it"
    assert str(missing.value) == f"signs: no x.zip in {home / 'mine'}; {help_}"


def test_a_folder_that_may_not_be_read_is_said(home, monkeypatch):
    locked = home / "data"
    locked.mkdir()
    allowed = os.stat

    def stat(path, *arguments, **options):
        if Path(path).parent == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != locked)

    with pytest.raises(CelstackError) as missing:
        require_file("signs", None, ["x.zip"])

    tried = f"{locked} (permission denied), {home / 'cache' / 'celstack'}"
    assert str(missing.value).startswith(f"signs: no x.zip in {tried}; ")


def test_the_home_of_nobody_is_said(monkeypatch):
    monkeypatch.setenv("CELSTACK_DATA", "~nobody-of-that-name/data")

    for root, named in [(None, "CELSTACK_DATA: "), (Path("~nobody-of-that-name/data"), "")]:
        with pytest.raises(CelstackError) as refused:
            data_dirs(root)
        text = "~nobody-of-that-name/data: unknown user in the path"
        assert str(refused.value) == named + text


class Stars(Dataset):
    image_shape = (3, 8, 8)

    def count(self, split):
        return 1

    def read(self, split, indices):
        raise NotImplementedError


class Fetched(Stars):
    sources = (Source("https://a.org/stars.zip", "free", "https://a.org"),)


class Generated(Fetched):
    generated = True


class Asked(Stars):
    elsewhere = "ask Galilei"


@pytest.mark.parametrize(
    ("dataset", "remedy"),
    [
        (Stars, ""),
        (Fetched, "'celstack data get fetched' fetches it"),
        (Asked, "ask Galilei"),
        (
            Generated,
            "'celstack data get generated' fetches it; "
            "'celstack show dataset generated' says how to generate it instead",
        ),
    ],
)
def test_a_dataset_knows_the_remedy(dataset, remedy):
    assert dataset().remedy == remedy


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other caches")
def test_the_cache_is_where_the_system_has_its_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache_dir() == tmp_path / ".cache" / "celstack"

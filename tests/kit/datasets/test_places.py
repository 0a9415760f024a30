import sys
from pathlib import Path

import pytest

from celstack.errors import CelstackError
from celstack_kit.datasets.places import cache, find, look, places


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
    assert find("x", None, ["x.mat"]) == in_cache

    in_data = put(home / "data/x.mat")
    assert find("x", None, ["x.mat"]) == in_data


def test_where_a_root_is_named_nothing_else_is_looked_at(home):
    put(home / "data/x.mat")

    assert look(home / "mine", ["x.mat"]) is None
    assert places(Path("~/mine")) == [Path("~/mine").expanduser()]


def test_of_several_names_the_first_counts(home):
    put(home / "data/unpacked/x")
    packed = put(home / "data/x.zip")

    assert find("x", None, ["x.zip", "unpacked"]) == packed


def test_what_is_missing_is_said_with_all_places_tried(home):
    with pytest.raises(CelstackError) as missing:
        find("signs", None, ["x.zip", "unpacked"])

    tried = f"no x.zip or unpacked in {home / 'data'}, {home / 'cache' / 'celstack'}"
    help_ = "set root or CELSTACK_DATA to the folder that holds it"
    assert str(missing.value) == f"signs: {tried}; {help_}"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other caches")
def test_the_cache_is_where_the_system_has_its_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert cache() == tmp_path / ".cache" / "celstack"

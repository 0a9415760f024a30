"""What a newcomer without data is told: where it was looked for, and what would help."""

import sys

import pytest

from celstack import cli
from celstack.errors import CelstackError
from celstack_kit.datasets.gtsrb8 import Gtsrb8
from celstack_kit.datasets.svhn import Svhn
from celstack_kit.datasets.weizmann_horse import WeizmannHorse


@pytest.mark.parametrize(
    ("dataset", "wanted", "remedy"),
    [
        (
            Gtsrb8,
            "GTSRB_Final_Training_Images.zip or GTSRB/Final_Training/Images",
            "'celstack data get gtsrb8' fetches it",
        ),
        (
            Svhn,
            "train_32x32.mat or test_32x32.mat or extra_32x32.mat",
            "'celstack data get svhn' fetches it",
        ),
        (
            WeizmannHorse,
            "weizmann_horse_db.tar or weizmann_horse_db",
            "unpack weizmann_horse_db.tar.gz, which its author offered at "
            "https://www.msri.org/people/members/eranb/",
        ),
    ],
)
def test_missing_data_is_told_with_all_places_and_what_would_help(
    dataset, wanted, remedy, tmp_path, monkeypatch
):
    monkeypatch.setenv("CELSTACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    with pytest.raises(CelstackError) as missing:
        dataset().count("train")

    places = f"{tmp_path / 'data'}, {tmp_path / 'cache' / 'celstack'}"
    held = "set root or CELSTACK_DATA to the folder that holds it"
    assert str(missing.value) == f"{dataset.name}: no {wanted} in {places}; {remedy}; {held}"


def test_a_run_without_images_leaves_no_folder_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CELSTACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "runs"
    monkeypatch.setattr(sys, "argv", ["run-recipe", "paper/svhn", "--out", str(out)])

    with pytest.raises(SystemExit) as stopped:
        cli.run_recipe()

    assert stopped.value.code == 2
    assert "celstack: svhn: no train_32x32.mat or " in capsys.readouterr().err
    assert not out.exists()

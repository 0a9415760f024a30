"""`celstack look` draws the images of a recipe's dataset."""

import pytest
import torch
from PIL import Image

from celstack import Batch
from celstack.evaluation.visualize import color_labels, draw_batch

FEW = ["--set", "dataset.count=10", "--set", "dataset.test_count=1"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_images_are_drawn_with_their_ground_truth(command):
    seen = command("celstack", "look", "smoke.toml", *FEW, "--out", "sheet.png")

    expected = "sheet.png: 10 of 10 images of train, with their instances and classes\n"
    assert (seen.code, seen.said) == (0, expected)
    # Eight to a line, so two lines of three rows each; 35 pixels and a line between them.
    with Image.open("sheet.png") as sheet:
        assert sheet.size == (8 * 36 + 1, 6 * 36 + 1)


def test_the_picture_is_called_after_the_dataset(command, tmp_path):
    command("celstack", "look", "smoke.toml", *FEW, "--images", "3")

    assert (tmp_path / "tetrominoes.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--split", "tset"], "--split: tetrominoes has no split tset; did you mean 'test'?"),
        (["--images", "0"], "--images 0: must be at least 1"),
        (
            ["--out", "sheet.xyz"],
            "--out sheet.xyz: not the name of an image file, such as x.png",
        ),
        (["--out", "sheet"], "--out sheet: not the name of an image file, such as x.png"),
        (["--out", "no/sheet.png"], "--out no/sheet.png: cannot be written: No such file"),
    ],
)
def test_mistakes_are_told_in_one_line(command, arguments, complaint, tmp_path):
    seen = command("celstack", "look", "smoke.toml", *FEW, *arguments)

    assert seen.code == 2
    assert complaint in seen.complaint
    assert seen.complaint.count("\n") == 1
    assert not list(tmp_path.glob("*sheet*"))


def test_background_is_black_and_labels_differ():
    painted = color_labels(torch.arange(20).view(1, 4, 5)).flatten(2)[0].T

    assert not painted[0].any()
    distances = torch.cdist(painted, painted) + torch.eye(20)
    assert distances.min() > 0.05


def test_small_images_are_enlarged_and_few_make_a_short_row():
    batch = Batch(torch.rand(2, 1, 4, 8))

    assert draw_batch(batch).size == (8 * (2 * 9 + 1), 8 * (1 * 5 + 1))

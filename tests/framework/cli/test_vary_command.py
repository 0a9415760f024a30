import shutil

import pytest
from PIL import Image

from celstack.errors import CelstackError


def test_one_command_makes_the_figure(command, small_run, tmp_path):
    out = tmp_path / "figure.png"

    answer = command("celstack", "vary", str(small_run), "--out", str(out))

    assert answer.code == 0, answer.complaint
    assert answer.said == f"{out}: other sprites, other colors, other positions, other sizes\n"
    with Image.open(out) as picture:
        assert picture.mode == "RGB"
        assert picture.width > 600
    assert list(tmp_path.iterdir()) == [out]


def test_an_image_of_ones_own_can_be_varied(command, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (50, 40), "red").save("mine.jpg")

    answer = command("celstack", "vary", str(small_run), "--image", "mine.jpg")

    assert answer.code == 0, answer.complaint
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine.jpg",
        f"vary-{small_run.parent.name}-{small_run.name}.png",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--image", "gone.png"], "--image gone.png: no such file"),
        (["--out", "a.gif"], "--out a.gif: must end with .png"),
    ],
)
def test_a_mistake_is_one_line(command, small_run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)

    answer = command("celstack", "vary", str(small_run), *arguments)

    assert (answer.code, answer.complaint) == (2, f"celstack: {said}\n")
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_images_it_says_what_helps(
    command, copied_run, tmp_path, monkeypatch
):
    from celstack_kit.datasets.tetrominoes import Tetrominoes

    def gone(self, *_):
        raise CelstackError("no images here")

    monkeypatch.setattr(Tetrominoes, "count", gone)
    shutil.rmtree(copied_run / "examples")

    answer = command("celstack", "vary", str(copied_run), "--out", str(tmp_path / "a.png"))

    assert (answer.code, answer.complaint) == (
        2,
        "celstack: no images here; name an image with --image\n",
    )

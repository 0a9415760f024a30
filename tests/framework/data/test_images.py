from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from celstack import CelstackError
from celstack.data.images import find_images, read_center_cropped

RED, BLUE = (255, 0, 0), (0, 0, 255)


@pytest.fixture
def picture(tmp_path):
    """Write a small image and return its path."""

    def make(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2), RED).save(path)
        return path

    return make


def names(sources, out="out"):
    return [str(image.name) for image in find_images(sources, Path(out))[0]]


def test_an_image_is_called_by_its_name_without_the_ending(picture):
    assert names([picture("a.v2.png")]) == ["a.v2"]


def test_a_folder_is_mirrored_in_order(picture, tmp_path):
    for name in ("photos/b.png", "photos/a.png", "photos/sub/a.png"):
        picture(name)

    assert names([tmp_path / "photos"]) == ["a", "b", "sub/a"]


def test_the_same_name_in_two_folders_mirrors_where_they_are(picture, tmp_path):
    left, right = picture("left/a.png"), picture("right/a.png")

    assert names([left, right]) == ["left/a", "right/a"]
    assert names([tmp_path / "left", tmp_path / "right"]) == ["left/a", "right/a"]


def test_the_same_name_with_other_endings_keeps_the_endings(picture, tmp_path):
    for name in ("a.png", "a.bmp", "b.png"):
        picture(name)

    assert names([tmp_path]) == ["a.bmp", "a.png", "b"]


def test_capitals_make_no_difference_on_many_disks(picture):
    assert names([picture("A.png"), picture("a.bmp")]) == ["A.png", "a.bmp"]


def test_no_name_is_there_twice_whatever_files_are_called(picture, tmp_path):
    for name in ("a.png", "a.jpg", "a.png.jpg"):
        picture(name)

    assert names([tmp_path]) == ["a.jpg", "a.png", "a.png.jpg"]


def test_an_image_that_is_named_twice_is_there_once(picture, tmp_path):
    path = picture("photos/a.png")

    assert names([path, tmp_path / "photos", path]) == ["a"]


def test_what_is_hidden_and_the_output_are_left_out(picture, tmp_path):
    for name in ("a.png", ".b.png", ".c/d.png", "out/e/input.png"):
        picture(name)

    assert names([tmp_path], tmp_path / "out") == ["a"]


def test_what_is_no_image_is_counted_in_a_folder(picture, tmp_path):
    picture("a.png")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty.png").touch()

    images, skipped = find_images([tmp_path], tmp_path / "out")

    assert (len(images), skipped) == (1, 2)


def test_what_is_no_image_is_a_mistake_where_it_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(
        CelstackError, match=r"notes\.txt: not an image, or of an unknown format"
    ):
        find_images([tmp_path / "notes.txt"], tmp_path / "out")


def test_a_folder_without_images_and_a_file_that_is_not_there_are_mistakes(tmp_path, picture):
    (tmp_path / "empty").mkdir()

    with pytest.raises(CelstackError, match="empty: no image in this folder"):
        find_images([picture("a.png"), tmp_path / "empty"], tmp_path / "out")
    with pytest.raises(CelstackError, match=r"b\.png: no such image or folder"):
        find_images([tmp_path / "b.png"], tmp_path / "out")


def fitted(image, tmp_path, size=(2, 2), channels=3, name="a.png", **options):
    image.save(tmp_path / name, **options)
    return np.asarray(read_center_cropped(tmp_path / name, size, channels))


def test_an_image_covers_the_canvas_and_is_cropped_to_its_centre(tmp_path):
    wide = Image.new("RGB", (6, 2), RED)
    wide.paste(BLUE, (2, 0, 4, 2))

    assert (fitted(wide, tmp_path) == BLUE).all()


def test_the_canvas_is_height_then_width(tmp_path):
    assert fitted(Image.new("RGB", (50, 50)), tmp_path, (4, 7)).shape == (4, 7, 3)


def test_a_single_pixel_fills_the_canvas(tmp_path):
    assert (fitted(Image.new("RGB", (1, 1), RED), tmp_path, (5, 3)) == RED).all()


def test_what_shows_through_is_white(tmp_path):
    clear = Image.new("RGBA", (2, 2), (255, 0, 0, 51))

    assert fitted(clear, tmp_path)[0, 0].tolist() == [255, 204, 204]


def test_16_bits_become_8(tmp_path):
    deep = Image.fromarray(np.full((2, 2), 32896, dtype=np.uint16))

    assert fitted(deep, tmp_path)[0, 0].tolist() == [128, 128, 128]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16", "CMYK", "F"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_every_mode_are_read(tmp_path, mode, channels):
    found = fitted(Image.new(mode, (3, 4)), tmp_path, (2, 2), channels, "a.tiff")

    assert found.shape == ((2, 2) if channels == 1 else (2, 2, 3))


def test_an_image_is_turned_as_its_camera_was(tmp_path):
    lying = Image.new("RGB", (16, 16), RED)
    lying.paste(BLUE, (0, 0, 8, 16))  # blue at the left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise: left is up

    turned = fitted(lying, tmp_path, (2, 2), exif=exif)

    (above, _), (below, _) = turned.argmax(axis=-1)
    assert (above, below) == (2, 0)


def test_a_damaged_image_is_told_in_one_line(tmp_path):
    Image.effect_noise((64, 64), 90).save(tmp_path / "a.jpg")
    whole = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(CelstackError) as caught:
        read_center_cropped(tmp_path / "a.jpg", (2, 2), 3)

    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path / 'a.jpg'}: cannot be read: ")


def test_no_program_is_started_to_read_an_image(picture, monkeypatch):
    # Pillow gives PostScript to Ghostscript, which runs it.
    started = []
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *rest, **_: started.append(rest))
    path = picture("a.eps").rename(picture("b.png"))

    with pytest.raises(CelstackError, match="not an image, or of an unknown format"):
        read_center_cropped(path, (2, 2), 3)
    assert started == []

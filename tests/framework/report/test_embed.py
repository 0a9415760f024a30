import base64
import io

import numpy as np
import pytest
from PIL import Image

from celstack.report.embed import MIN_PICTURE_LIMIT_BYTES, data_uri, thumbnail


def decoded(uri):
    heading, _, data = uri.partition(",")
    assert heading == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_a_small_picture_is_exact(mode):
    channels = len(mode)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 9, channels), dtype=np.uint8)
    if mode.endswith("A"):
        pixels[..., -1] = 255  # what cannot be seen need not be exact
    picture = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)

    shown = decoded(data_uri(picture))

    assert shown.convert("RGBA").tobytes() == picture.convert("RGBA").tobytes()


def test_a_photograph_is_small_and_nearly_exact():
    rows, columns = np.mgrid[0:128, 0:128]
    waves = 60 * np.sin(rows * columns / 400)
    pixels = (np.dstack([rows + waves, columns + waves, rows + columns]) + 20).clip(0, 255)
    picture = Image.fromarray(pixels.astype(np.uint8))

    uri = data_uri(picture)

    assert len(uri) < 1.5 * MIN_PICTURE_LIMIT_BYTES
    error = np.abs(np.array(decoded(uri)).astype(int) - np.array(picture).astype(int))
    assert error.mean() < 8


@pytest.mark.parametrize("channels", [3, 4])
def test_even_noise_takes_little(channels):
    pixels = np.random.default_rng(0).integers(0, 256, (128, 128, channels), dtype=np.uint8)

    assert len(data_uri(Image.fromarray(pixels))) < 3 * MIN_PICTURE_LIMIT_BYTES


def test_a_thumbnail_is_small_and_leaves_the_picture_alone():
    picture = Image.new("RGBA", (100, 50), "red")

    assert thumbnail(picture, 20).size == (20, 10)
    assert thumbnail(picture, 200).size == (100, 50)
    assert picture.size == (100, 50)

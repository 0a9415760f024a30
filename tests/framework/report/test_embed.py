import base64
import io

import numpy as np
import pytest
from PIL import Image

from celstack.report.embed import LOSSLESS, data_uri


def decoded(uri):
    heading, _, data = uri.partition(",")
    assert heading == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_a_small_picture_is_exact(mode):
    channels = len(mode.replace("RGB", "RGB"))
    pixels = np.random.default_rng(0).integers(0, 256, (8, 9, channels), dtype=np.uint8)
    if mode.endswith("A"):
        pixels[..., -1] = 255  # what cannot be seen need not be exact
    picture = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)

    shown = decoded(data_uri(picture))

    assert shown.convert("RGBA").tobytes() == picture.convert("RGBA").tobytes()


def test_a_photograph_is_small_and_nearly_exact():
    rows, columns = np.mgrid[0:128, 0:128]
    chance = np.random.default_rng(0).normal(0, 8, (128, 128, 3))
    pixels = (np.dstack([rows, columns, rows + columns]) + 20 + chance).clip(0, 255)
    picture = Image.fromarray(pixels.astype(np.uint8))

    uri = data_uri(picture)

    assert len(uri) < 5 * LOSSLESS
    error = np.abs(np.array(decoded(uri)).astype(int) - np.array(picture).astype(int))
    assert error.mean() < 8

"""Turn image files of any mode into upright RGB."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from celstack import CelstackError
from celstack.data.images import formats
from celstack_kit.formats.read_errors import naming


def decode(file: Path | bytes, name: str, least: int | None = None) -> Image.Image:
    """Return an image in RGB, turned as its camera was, or say that this file is damaged.

    What shows through goes over white; 16 bits become 8. A large JPEG may come out smaller,
    which is much faster, but neither side below ``least``.
    """
    with _opened(file, name) as image:
        if least is not None:
            image.draft(None, (least, least))
        return _rgb(ImageOps.exif_transpose(image))


def upright_size(file: Path) -> tuple[int, int]:
    """Return width and height as they are after turning, without decoding the image."""
    with _opened(file, str(file)) as image:
        width, height = image.size
        sideways = image.getexif().get(ExifTags.Base.Orientation, 1) >= 5
    return (height, width) if sideways else (width, height)


def decode_ids(file: Path) -> NDArray[np.int32]:
    """Return the one channel of a mask as it is stored, without a look at its palette."""
    with _opened(file, str(file)) as image:
        ids = np.asarray(image).astype(np.int32)
    if ids.ndim != 2:
        raise CelstackError(f"{file}: a mask has one channel of ids, not {ids.shape[-1]}")
    if ids.min() < 0:
        raise CelstackError(f"{file}: the ids of a mask are 0 or more")
    return ids


def as_tensor(image: Image.Image) -> UInt8[Tensor, "3 H W"]:
    """Return the pixels of an RGB image, channels first."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


@contextmanager
def _opened(file: Path | bytes, name: str) -> Iterator[Image.Image]:
    source = io.BytesIO(file) if isinstance(file, bytes) else file
    with naming(name), warnings.catch_warnings():
        # Pillow warns of odd notes in a file, about which nobody can do anything.
        warnings.simplefilter("ignore")
        try:
            image = Image.open(source, formats=formats())
        except UnidentifiedImageError:
            # Pillow's words name an address in memory.
            raise CelstackError(f"{name}: damaged or unreadable (not a known image)") from None
        with image:
            yield image


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # Gray of 16 bits, which Pillow would cut off at 255.
        levels = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray(np.round(levels / 257).astype(np.uint8))
    elif image.has_transparency_data:
        seen = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    return image.convert("RGB")

"""Decode image files of any mode to upright RGB."""

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
from celstack.data import readable_formats
from celstack_kit.formats.read_errors import blame_file


def decode(file: Path | bytes, name: str, min_side: int | None = None) -> Image.Image:
    """Decode an image to RGB and apply its EXIF orientation.

    Transparent pixels are blended over white, and 16-bit gray is reduced to 8 bits.

    Args:
        file: Path or content of the file.
        name: The file's name for messages.
        min_side: Let the JPEG decoder downscale, which is much faster, as long as no side
            becomes shorter than this.

    Raises:
        CelstackError: The file is damaged or not an image.
    """
    with _open_image(file, name) as image:
        if min_side is not None:
            image.draft(None, (min_side, min_side))
        return _rgb(ImageOps.exif_transpose(image))


def upright_size(file: Path) -> tuple[int, int]:
    """Return width and height after applying the EXIF orientation, without decoding pixels."""
    with _open_image(file, str(file)) as image:
        width, height = image.size
        sideways = image.getexif().get(ExifTags.Base.Orientation, 1) >= 5
    return (height, width) if sideways else (width, height)


def decode_ids(file: Path) -> NDArray[np.int32]:
    """Return the ids of a single-channel mask; palette indices are not mapped to colors."""
    with _open_image(file, str(file)) as image:
        ids = np.asarray(image).astype(np.int32)
    if ids.ndim != 2:
        raise CelstackError(f"{file}: a mask has one channel of ids, not {ids.shape[-1]}")
    if ids.min() < 0:
        raise CelstackError(f"{file}: the ids of a mask are 0 or more")
    return ids


def as_tensor(image: Image.Image) -> UInt8[Tensor, "3 H W"]:
    """Convert an RGB image to a tensor, channels first."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


@contextmanager
def _open_image(file: Path | bytes, name: str) -> Iterator[Image.Image]:
    source = io.BytesIO(file) if isinstance(file, bytes) else file
    with blame_file(name), warnings.catch_warnings():
        # Pillow warns about malformed metadata, which does not matter here.
        warnings.simplefilter("ignore")
        try:
            image = Image.open(source, formats=readable_formats())
        except UnidentifiedImageError:
            # Pillow's own message contains a memory address.
            raise CelstackError(f"{name}: damaged or unreadable (not a known image)") from None
        with image:
            yield image


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # 16-bit gray, which Pillow would clip at 255.
        levels = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray(np.round(levels / 257).astype(np.uint8))
    elif image.has_transparency_data:
        seen = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    return image.convert("RGB")

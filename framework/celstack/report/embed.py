"""Pictures inside a page: small, and of no other file."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image

ENOUGH = 5_000
"""As many bytes are enough for a picture of ordinary size; larger ones may take more."""
ENOUGH_PER_PIXEL = 0.3
QUALITIES = (88, 70, 50, 30, 10)
"""What a picture that takes too much, such as a photograph, is encoded with; the first that
is enough."""


def data_uri(picture: Image.Image) -> str:
    """Spell a picture as an address: exact where that is small, else as good as it can be."""
    if picture.mode not in ("RGB", "RGBA"):
        picture = picture.convert("RGBA" if "A" in picture.mode else "RGB")
    limit = max(ENOUGH, ENOUGH_PER_PIXEL * picture.width * picture.height)
    data = _encode(picture, lossless=True, method=2)
    for quality in QUALITIES:
        if len(data) <= limit:
            break
        data = _encode(picture, quality=quality, alpha_quality=quality)
    return f"data:image/webp;base64,{base64.b64encode(data).decode('ascii')}"


def embed(path: Path) -> str:
    """Spell the picture of a PNG file as an address; one missing or damaged is left out."""
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return data_uri(picture)
    # Files that are damaged fail in many ways; a page does without them.
    except Exception:
        return ""


def thumbnail(picture: Image.Image, side: int) -> Image.Image:
    """Make a picture no larger than a square of this side."""
    small = picture.copy()
    small.thumbnail((side, side))
    return small


def _encode(picture: Image.Image, **options: bool | int) -> bytes:
    file = io.BytesIO()
    picture.save(file, "webp", **options)
    return file.getvalue()

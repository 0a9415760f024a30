"""Pictures embedded in a page as data URIs."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image

MIN_PICTURE_LIMIT_BYTES = 5_000
"""The size limit of small pictures; that of larger ones grows with their pixels."""
LIMIT_BYTES_PER_PIXEL = 0.3
QUALITIES = (88, 70, 50, 30, 10)
"""The qualities to try for a picture that is too large when lossless, such as a photo."""


def data_uri(picture: Image.Image) -> str:
    """Encode a picture as a data URI: lossless if small enough, else at reduced quality."""
    if picture.mode not in ("RGB", "RGBA"):
        picture = picture.convert("RGBA" if "A" in picture.mode else "RGB")
    limit = max(MIN_PICTURE_LIMIT_BYTES, LIMIT_BYTES_PER_PIXEL * picture.width * picture.height)
    data = _encode(picture, lossless=True, method=2)
    for quality in QUALITIES:
        if len(data) <= limit:
            break
        data = _encode(picture, quality=quality, alpha_quality=quality)
    return f"data:image/webp;base64,{base64.b64encode(data).decode('ascii')}"


def embed(path: Path) -> str:
    """Encode a PNG file as a data URI; empty if it is missing or damaged."""
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return data_uri(picture)
    # Damaged files raise errors of many types; a page is shown without them.
    except Exception:
        return ""


def thumbnail(picture: Image.Image, side: int) -> Image.Image:
    """Return a copy that fits into a square of this side."""
    small = picture.copy()
    small.thumbnail((side, side))
    return small


def _encode(picture: Image.Image, **options: bool | int) -> bytes:
    file = io.BytesIO()
    picture.save(file, "webp", **options)
    return file.getvalue()

"""Pictures inside a page: small, and of no other file."""

from __future__ import annotations

import base64
import io

from PIL import Image

LOSSLESS = 6_000
"""Pictures that take more bytes than these, which are photographs, lose what nobody sees."""
QUALITY = 88


def data_uri(picture: Image.Image) -> str:
    """Spell a picture as an address: exact if it is simple, else very nearly so."""
    if picture.mode not in ("RGB", "RGBA"):
        picture = picture.convert("RGBA" if "A" in picture.mode else "RGB")
    data = _encode(picture, lossless=True, method=2)
    if len(data) > LOSSLESS:
        data = min(data, _encode(picture, quality=QUALITY), key=len)
    return f"data:image/webp;base64,{base64.b64encode(data).decode('ascii')}"


def _encode(picture: Image.Image, **options: bool | int) -> bytes:
    file = io.BytesIO()
    picture.save(file, "webp", **options)
    return file.getvalue()
